import type { DeadLetter } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { attemptsOf } from '../letter-attempts.ts'
import { type FilterOptions, filterOf, filterOptions } from '../letter-filter.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import type { OptionSpec, ValuesOf } from '../option-spec.ts'
import { DEFAULT_LIMIT, type PageOptions, pageOptions } from '../page-options.ts'
import { redactedLetter } from '../redacted-letter.ts'
import { refuseStranger } from '../refuse-stranger.ts'
import { revealOptions, viewOf } from '../reveal-options.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

interface ListOptions extends FilterOptions, PageOptions {
  readonly config: OptionSpec<string | undefined>
  readonly reveal: OptionSpec<boolean>
  readonly operator: OptionSpec<string | undefined>
  readonly note: OptionSpec<string | undefined>
}

const options: ListOptions = {
  ...filterOptions,
  ...pageOptions,
  config: catalogueOption,
  ...revealOptions,
}

/** `commitpost dlq list` */
export const dlqListCommand: Command = defineCommand({
  name: 'dlq list',
  summary: { en: 'Lists dead letters, newest first', ko: '데드 레터를 최신순으로 보여 줍니다' },
  operands: {},
  options,
  run: async (invocation) => {
    const { values, globals, terminal } = invocation
    const view = viewOf(values, 'dlq list', invocation)
    const filter = filterOf(values, 'dlq list', invocation)
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const deadLetters = database.deadLettersBy(known)
      const { before, limit = DEFAULT_LIMIT } = values
      const query = { ...filter, limit }
      const found = await deadLetters.list(before === undefined ? query : { ...query, before }, view)
      const letters = found.map(redactedLetter)
      const total = await deadLetters.count(filter)
      if (total === 0) await refuseStranger(values.subscription, database)
      const last = letters.length < limit ? undefined : letters.at(-1)?.id
      // Asked for apart and masked: what is revealed is recorded, and must be what is shown.
      const rest = last === undefined ? [] : await deadLetters.list({ ...filter, before: last, limit: 1 })
      const nextBefore = rest.length === 0 ? null : (last ?? null)
      if (globals.json) terminal.printJson({ deadLetters: letters.map(summaryOf), total, nextBefore })
      else printList(letters, total, nextBefore, invocation)
      return 0
    })
  },
})

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
    formats.count(attemptsOf(letter)),
    ...(withState ? [state] : []),
    `${letter.errorCode}: ${letter.errorMessage}`,
  ].map(safeLine)
}
