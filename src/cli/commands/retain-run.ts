import type { RetentionReport } from '../../retain/retention.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { loadWorkerConfig } from '../load-worker-config.ts'
import type { RetainMessages } from '../messages/retain.ts'
import { noteOption, ofPerson } from '../operator-options.ts'
import { flag, text } from '../option-spec.ts'
import { usageError } from '../parse.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'

/** `commitpost retain run` */
export const retainRunCommand: Command = defineCommand({
  name: 'retain run',
  summary: {
    en: 'Deletes or archives events that everybody is done with, as the policies of a config file say',
    ko: '설정 파일의 보존 정책대로 처리가 끝난 이벤트를 삭제하거나 보관합니다',
  },
  details: {
    en: 'In small batches that leave the database to live work. After Ctrl-C or a crash run it again: it goes on where it was.\nThe policies are those of createOutbox({ retention }) in the config file. Ends with 0 when all is done, else with 1.',
    ko: '실시간 작업을 방해하지 않도록 조금씩 처리합니다. 중단된 뒤 다시 실행하면 이어서 진행합니다.\n정책은 설정 파일의 createOutbox({ retention })에 있는 것입니다. 모두 끝나면 0, 아니면 1로 끝납니다.',
  },
  operands: {},
  options: {
    stream: text('STREAM', {
      en: 'Only the policy of this stream or pattern, as the config names it',
      ko: '설정에 적힌 이 스트림 또는 패턴의 정책만',
    }),
    'dry-run': flag({
      en: 'Count what would go, and change nothing',
      ko: '대상만 세고 아무것도 바꾸지 않습니다',
    }),
    operator: ofPerson(
      text('NAME', {
        en: 'Who does this: it is recorded with the act. Needed without --dry-run',
        ko: '작업하는 사람의 이름입니다. 작업과 함께 기록됩니다. --dry-run이 없으면 필요합니다',
      }),
    ),
    note: noteOption,
    config: text('FILE', {
      en: 'The config file. Default: commitpost.config.js, .mjs, .ts or .mts',
      ko: '설정 파일입니다. 기본값: commitpost.config.js, .mjs, .ts 또는 .mts',
    }),
  },
  run: async (invocation) => {
    const { values, globals, process, terminal, messages, formats } = invocation
    const { stream, 'dry-run': dryRun, operator, note = '' } = values
    if (operator === undefined && !dryRun) {
      throw usageError([messages.retain.needsOperator], 'retain run')
    }
    const signal = process.untilInterrupted()
    const { config } = await loadWorkerConfig({ cwd: process.cwd, path: values.config, globals })
    try {
      const reports = await config.outbox.retention.run({
        operator: operator ?? 'nobody',
        note,
        dryRun,
        signal,
        ...(stream === undefined ? {} : { stream }),
        ...(globals.json
          ? {}
          : {
              onWait: (policy, waitsFor) => {
                terminal.endLive()
                terminal.note(messages.retain.waits(policy, waitsFor))
              },
              onProgress: ({ policy, deleted, archived, lastPosition }) =>
                terminal.printLive(
                  messages.retain.progress(
                    policy,
                    formats.count(deleted),
                    formats.count(archived),
                    lastPosition,
                  ),
                ),
            }),
      })
      terminal.endLive()
      if (globals.json) terminal.printJson({ dryRun, operator: operator ?? null, policies: reports })
      else printReports(reports, operator, invocation)
      return reports.some(({ state }) => state === 'interrupted') ? 1 : 0
    } finally {
      await config.close?.()
    }
  },
})

function printReports(
  reports: readonly RetentionReport[],
  operator: string | undefined,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { columns, states, awaitingExport, unknownType, interrupted } = messages.retain
  const head = [
    { title: columns.policy },
    { title: columns.stream, elastic: true },
    { title: columns.state },
    { title: columns.deleted, align: 'right' as const },
    { title: columns.archived, align: 'right' as const },
  ]
  const rows = reports.map(({ policy, stream, state, deleted, archived }) => [
    policy,
    safeLine(stream),
    states[state],
    formats.count(deleted),
    formats.count(archived),
  ])
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
  for (const report of reports) {
    if (report.awaitingExport > 0)
      terminal.note(awaitingExport(report.policy, formats.count(report.awaitingExport)))
    if (report.unknownType > 0) terminal.note(unknownType(report.policy, formats.count(report.unknownType)))
  }
  if (reports.some(({ state }) => state === 'interrupted')) terminal.note(interrupted)
  const ending = endingOf(reports, operator, messages.retain)
  if (ending !== null) terminal.note(ending)
}

/**
 * Batches are recorded: where there was none, nobody's name stands anywhere. A run that was interrupted before its first
 * batch never came to know whether there was something to let go.
 */
function endingOf(
  reports: readonly RetentionReport[],
  operator = '',
  { nothingChanged, nothingWent, recorded }: RetainMessages,
): string | null {
  if (reports.every(({ state }) => state === 'planned')) return nothingChanged
  if (reports.some(({ deleted, archived }) => deleted + archived > 0)) return recorded(safeLine(operator))
  return reports.every(({ state }) => state === 'done') ? nothingWent : null
}
