import { redact } from '../../runtime/redact.ts'
import type { DeadLetterGroup } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { filterOf, filterOptions } from '../letter-filter.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { wholeNumber } from '../option-spec.ts'
import { refuseStranger } from '../refuse-stranger.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

const DEFAULT_LIMIT = 50
const MOST = 500

/** `commitpost dlq group` */
export const dlqGroupCommand: Command = defineCommand({
  name: 'dlq group',
  summary: {
    en: 'Counts dead letters by what their errors have in common',
    ko: '오류가 같은 데드 레터를 묶어서 셉니다',
  },
  details: {
    en: 'Errors that differ only in numbers, ids and quoted values are one group. The largest come first.',
    ko: '숫자, ID, 따옴표 안의 값만 다른 오류는 한 묶음입니다. 큰 묶음부터 보여 줍니다.',
  },
  operands: {},
  options: {
    ...filterOptions,
    config: catalogueOption,
    limit: wholeNumber(
      'N',
      { least: 1, most: MOST },
      {
        en: `At most this many groups, up to ${MOST}. Default: ${DEFAULT_LIMIT}`,
        ko: `최대 묶음 수(${MOST} 이하)입니다. 기본값: ${DEFAULT_LIMIT}`,
      },
    ),
  },
  run: async (invocation) => {
    const { values, globals, terminal } = invocation
    const filter = filterOf(values, 'dlq group', invocation)
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const deadLetters = database.deadLettersBy(known)
      const found = await deadLetters.group({ ...filter, limit: values.limit ?? DEFAULT_LIMIT })
      if (found.length === 0) await refuseStranger(values.subscription, database)
      const groups = found.map((group) => ({ ...group, pattern: redact(group.pattern) }))
      if (globals.json) terminal.printJson({ groups })
      else printGroups(groups, invocation)
      return 0
    })
  },
})

function printGroups(groups: readonly DeadLetterGroup[], invocation: Invocation<unknown>): void {
  const { terminal, messages, formats } = invocation
  if (groups.length === 0) {
    terminal.note(messages.deadLetters.none)
    return
  }
  const { groupColumns: columns, seeGroup } = messages.care
  const head = [
    { title: columns.count, align: 'right' as const },
    { title: columns.first },
    { title: columns.last },
    { title: columns.subscriptions },
    { title: columns.events },
    { title: columns.sample, align: 'right' as const },
    { title: columns.fingerprint },
    { title: columns.error, elastic: true },
  ]
  const rows = groups.map((group) =>
    [
      formats.count(group.count),
      formats.time(group.firstFailedAt),
      formats.time(group.lastFailedAt),
      group.subscriptions.join(', '),
      group.eventTypes.join(', '),
      group.sampleId,
      group.fingerprint,
      `${group.errorCode}: ${group.pattern}`,
    ].map(safeLine),
  )
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
  terminal.note(seeGroup)
}
