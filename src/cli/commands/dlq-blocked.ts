import { redact } from '../../runtime/redact.ts'
import type { BlockedKey } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { rowNumber, text, wholeNumber } from '../option-spec.ts'
import { refuseStranger } from '../refuse-stranger.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

const DEFAULT_LIMIT = 50
const MOST = 500

/** `commitpost dlq blocked` */
export const dlqBlockedCommand: Command = defineCommand({
  name: 'dlq blocked',
  summary: {
    en: 'Lists the keys of ordered subscriptions that wait behind a dead letter, longest first',
    ko: '순서가 있는 구독에서 데드 레터 뒤에 막힌 키를 오래된 순으로 보여 줍니다',
  },
  details: {
    en: 'A key goes on once its dead letter is retried, amended or resolved.',
    ko: '데드 레터를 재시도하거나 수정하거나 해결하면 그 키의 전달이 이어집니다.',
  },
  operands: {},
  options: {
    subscription: text('NAME', { en: 'Only keys of this subscription', ko: '이 구독의 키만' }),
    limit: wholeNumber(
      'N',
      { least: 1, most: MOST },
      {
        en: `At most this many, up to ${MOST}. Default: ${DEFAULT_LIMIT}`,
        ko: `최대 건수(${MOST} 이하)입니다. 기본값: ${DEFAULT_LIMIT}`,
      },
    ),
    config: catalogueOption,
    after: rowNumber('ID', {
      en: 'Only those whose dead letter is above this one: the next page',
      ko: '이 데드 레터보다 뒤의 것만(다음 페이지)',
    }),
  },
  run: async (invocation) => {
    const { values, globals, terminal } = invocation
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const deadLetters = database.deadLettersBy(known)
      const { subscription, after, limit = DEFAULT_LIMIT } = values
      // One more than asked for tells whether there is a next page.
      const found = await deadLetters.blocked({
        limit: limit + 1,
        ...(subscription === undefined ? {} : { subscription }),
        ...(after === undefined ? {} : { after }),
      })
      if (found.length === 0) await refuseStranger(subscription, database)
      const keys = found.slice(0, limit).map((key) => ({ ...key, errorMessage: redact(key.errorMessage) }))
      const nextAfter = found.length > limit ? (keys.at(-1)?.deadLetterId ?? null) : null
      if (globals.json) terminal.printJson({ blockedKeys: keys, nextAfter })
      else printKeys(keys, nextAfter, invocation)
      return 0
    })
  },
})

function printKeys(
  keys: readonly BlockedKey[],
  nextAfter: string | null,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { care } = messages
  if (keys.length === 0) {
    terminal.note(care.noneBlocked)
    return
  }
  const { blockedColumns: columns } = care
  const head = [
    { title: columns.subscription },
    { title: columns.key },
    { title: columns.letter, align: 'right' as const },
    { title: columns.event },
    { title: columns.blockedFor, align: 'right' as const },
    { title: columns.waiting, align: 'right' as const },
    { title: columns.error, elastic: true },
  ]
  const rows = keys.map((key) => {
    const waiting = formats.count(key.waiting)
    return [
      key.subscription,
      key.orderingKey,
      key.deadLetterId,
      key.eventType,
      formats.age(key.blockedSeconds),
      key.waitingIsExact ? waiting : care.atLeast(waiting),
      `${key.errorCode}: ${key.errorMessage}`,
    ].map(safeLine)
  })
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
  if (nextAfter !== null) terminal.note(care.nextBlocked(nextAfter))
}
