import type { DeadLetter, DeadLetterQuery } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { flag, type OptionSpec, rowNumber, text, type ValuesOf, wholeNumber } from '../option-spec.ts'
import { redactedLetter } from '../redacted-letter.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

const DEFAULT_LIMIT = 50
const MOST = 500

interface ListOptions extends Readonly<Record<string, OptionSpec<unknown>>> {
  readonly subscription: OptionSpec<string | undefined>
  readonly type: OptionSpec<string | undefined>
  readonly error: OptionSpec<string | undefined>
  readonly resolved: OptionSpec<boolean>
  readonly all: OptionSpec<boolean>
  readonly limit: OptionSpec<number | undefined>
  readonly before: OptionSpec<string | undefined>
}

const options: ListOptions = {
  subscription: text('NAME', { en: 'Only those of this subscription', ko: '이 구독의 것만' }),
  type: text('TYPE', { en: 'Only events of this type', ko: '이 유형의 이벤트만' }),
  error: text('CODE', { en: 'Only those with this error code', ko: '이 오류 코드만' }),
  resolved: flag({ en: 'Those that were resolved, instead of the open ones', ko: '미해결 대신 해결된 것만' }),
  all: flag({ en: 'Open and resolved ones', ko: '미해결과 해결됨 모두' }),
  limit: wholeNumber(
    'N',
    { least: 1, most: MOST },
    {
      en: `At most this many, up to ${MOST}. Default: ${DEFAULT_LIMIT}`,
      ko: `최대 건수(${MOST} 이하)입니다. 기본값: ${DEFAULT_LIMIT}`,
    },
  ),
  before: rowNumber('ID', {
    en: 'Only ids below this one: the next page',
    ko: '이 ID보다 앞선 것만(다음 페이지)',
  }),
}

/** `commitpost dlq list` */
export const dlqListCommand: Command = defineCommand({
  name: 'dlq list',
  summary: { en: 'Lists dead letters, newest first', ko: '데드 레터를 최신순으로 보여 줍니다' },
  operands: {},
  options,
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ deadLetters }) => {
      const { values, globals, terminal } = invocation
      const query = queryOf(values)
      // One more than asked for tells whether there is a next page.
      const found = await deadLetters.list({ ...query, limit: query.limit + 1 })
      const letters = found.slice(0, query.limit).map(redactedLetter)
      const total = await deadLetters.count(filterOf(query))
      const nextBefore = found.length > query.limit ? (letters.at(-1)?.id ?? null) : null
      if (globals.json) terminal.printJson({ deadLetters: letters.map(summaryOf), total, nextBefore })
      else printList(letters, total, nextBefore, invocation)
      return 0
    }),
})

function queryOf(values: ValuesOf<ListOptions>): DeadLetterQuery & { readonly limit: number } {
  const { subscription, type: eventType, error: errorCode, before, all, resolved } = values
  return {
    ...(subscription === undefined ? {} : { subscription }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(before === undefined ? {} : { before }),
    resolved: all ? null : resolved,
    limit: values.limit ?? DEFAULT_LIMIT,
  }
}

function filterOf({ before: _before, limit: _limit, ...filter }: DeadLetterQuery): DeadLetterQuery {
  return filter
}

/** Without payload, headers and history: `dlq show` has them. */
function summaryOf({
  payload: _payload,
  headers: _headers,
  attemptHistory: _history,
  ...rest
}: DeadLetter): object {
  return rest
}

function printList(
  letters: readonly DeadLetter[],
  total: number,
  nextBefore: string | null,
  invocation: Invocation<ValuesOf<ListOptions>>,
): void {
  const { terminal, formats, messages, values } = invocation
  if (letters.length === 0) {
    terminal.note(messages.deadLetters.none)
    return
  }
  const { columns } = messages.deadLetters
  const withState = values.all || values.resolved
  const head = [
    { title: columns.id, align: 'right' as const },
    { title: columns.failedAt },
    { title: columns.subscription },
    { title: columns.event },
    { title: columns.aggregate },
    { title: columns.attempts, align: 'right' as const },
    ...(withState ? [{ title: columns.state }] : []),
    { title: columns.error, elastic: true },
  ]
  const rows = letters.map((letter) => rowOf(letter, withState, invocation))
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
  terminal.note(messages.deadLetters.shown(formats.count(letters.length), formats.count(total)))
  if (nextBefore !== null) terminal.note(messages.deadLetters.nextPage(nextBefore))
}

function rowOf(
  letter: DeadLetter,
  withState: boolean,
  { formats, messages }: Invocation<unknown>,
): readonly string[] {
  const state = letter.resolved
    ? messages.deadLetters.closedBy(letter.resolution, letter.resolvedBy ?? '')
    : messages.deadLetters.open
  return [
    letter.id,
    formats.time(letter.failedAt),
    letter.subscription,
    letter.eventType,
    `${letter.aggregateType}:${letter.aggregateId}`,
    formats.count(letter.retryCount + 1),
    ...(withState ? [state] : []),
    `${letter.errorCode}: ${letter.errorMessage}`,
  ].map(safeLine)
}
