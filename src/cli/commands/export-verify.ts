import { resolve } from 'node:path'
import type { ExportReport } from '../../retain/export-report.ts'
import { verifyExportFiles } from '../../retain/exports.ts'
import type { ExitCode } from '../cli-error.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { noteOption, ofPerson } from '../operator-options.ts'
import { requiredText, text } from '../option-spec.ts'
import { usageError } from '../parse.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost export verify <path>` */
export const exportVerifyCommand: Command = defineCommand({
  name: 'export verify',
  summary: {
    en: 'Reads an export again and names the first thing that is wrong with it',
    ko: '내보낸 것을 다시 읽어 처음으로 잘못된 곳을 알려 줍니다',
  },
  details: {
    en: 'With a database it is compared with what was recorded, and with the events that are still there; with --operator it\nis recorded as verified. Ends with 0 if it holds and with 3 if it does not.',
    ko: '데이터베이스가 있으면 기록 및 남아 있는 이벤트와 비교하고, --operator를 주면 검증했다고 기록합니다.\n온전하면 0, 아니면 3으로 끝납니다.',
  },
  operands: {
    path: requiredText('path', {
      en: 'The directory of the export, or its manifest',
      ko: '내보낸 디렉터리나 매니페스트 파일입니다',
    }),
  },
  options: {
    operator: ofPerson(
      text('NAME', {
        en: 'Who verifies it: recorded if it holds, so that retention may remove what was exported',
        ko: '검증하는 사람의 이름입니다. 온전하면 기록되어 보존 정책이 내보낸 이벤트를 지울 수 있습니다',
      }),
    ),
    note: noteOption,
  },
  run: async (invocation) => {
    const { values, globals, messages, process } = invocation
    const path = resolve(process.cwd, values.path)
    const { operator, note = '' } = values
    if (globals.databaseUrl === undefined) {
      if (operator !== undefined) throw usageError([messages.exports.needsDatabase], 'export verify')
      return told(await verifyExportFiles(path), null, invocation)
    }
    return withReadyDatabase(invocation, async (database) => {
      const act = operator === undefined ? undefined : { operator, note }
      return told(await database.exportsBy(undefined).verify(path, act), operator ?? null, invocation)
    })
  },
})

function told(report: ExportReport, operator: string | null, invocation: Invocation<unknown>): ExitCode {
  const { terminal, globals } = invocation
  if (globals.json) terminal.printJson(report)
  else printReport(report, operator, invocation)
  return report.holds ? 0 : 3
}

function printReport(
  { problem, stream, events, files, exportId }: ExportReport,
  operator: string | null,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const texts = messages.exports
  if (problem !== null) {
    const file = problem.file === null ? null : safeLine(problem.file)
    const line = texts.broken(file, texts.problems[problem.kind], safeLine(problem.detail))
    terminal.print(terminal.style('bad', line))
    return
  }
  const count = formats.count
  terminal.print(terminal.style('good', texts.holds(safeLine(stream ?? ''), count(events), count(files))))
  terminal.print(exportId === null ? texts.filesOnly : texts.compared(exportId))
  if (exportId !== null && operator !== null) terminal.print(texts.verified(exportId, safeLine(operator)))
}
