import { resolve } from 'node:path'
import type { DeadLetter } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand } from '../command.ts'
import { writeNewFile } from '../files.ts'
import { filterOf, filterOptions } from '../letter-filter.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { text } from '../option-spec.ts'
import { redactedLetter } from '../redacted-letter.ts'
import { refuseStranger } from '../refuse-stranger.ts'
import { revealOptions, viewOf } from '../reveal-options.ts'
import { safeJson, safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost dlq export` */
export const dlqExportCommand: Command = defineCommand({
  name: 'dlq export',
  summary: {
    en: 'Writes dead letters as NDJSON, one per line, with payload and history',
    ko: '데드 레터를 페이로드, 실패 기록과 함께 한 줄에 하나씩 NDJSON으로 씁니다',
  },
  details: {
    en: 'To the standard output, or to a new file that appears only once it is complete. Newest first.',
    ko: '표준 출력에 쓰거나, 완성된 뒤에만 나타나는 새 파일에 씁니다. 최신순입니다.',
  },
  operands: {},
  options: {
    ...filterOptions,
    out: text('FILE', {
      en: 'A file that does not exist yet. Default: the standard output',
      ko: '아직 없는 파일입니다. 기본값: 표준 출력',
    }),
    config: catalogueOption,
    ...revealOptions,
  },
  run: async (invocation) => {
    const { values, globals, terminal, messages, formats, process } = invocation
    const view = viewOf(values, 'dlq export', invocation)
    const filter = filterOf(values, 'dlq export', invocation)
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      // Before the file is there.
      await refuseStranger(values.subscription, database)
      let exported = 0
      const lines = linesOf(database.deadLettersBy(known).export(filter, view), () => {
        exported += 1
      })
      const { out: file = null } = values
      if (file === null) for await (const line of lines) terminal.print(line.trimEnd())
      else await writeNewFile(resolve(process.cwd, file), lines)
      if (globals.json && file !== null) terminal.printJson({ action: 'export', file, exported })
      else
        terminal.note(messages.care.exported(formats.count(exported), file === null ? null : safeLine(file)))
      if (known === undefined && view.reveal === undefined) terminal.note(messages.care.maskedWhole)
      return 0
    })
  },
})

async function* linesOf(
  letters: AsyncIterable<DeadLetter>,
  onLine: () => void,
): AsyncGenerator<string, void, undefined> {
  for await (const letter of letters) {
    yield `${safeJson(redactedLetter(letter))}\n`
    onLine()
  }
}
