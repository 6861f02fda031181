import { displayWidth, pad } from '../../runtime/width.ts'
import type { DeadLetter } from '../../store/dead-letter-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { attemptsOf } from '../letter-attempts.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { deadLetterOperand } from '../operator-options.ts'
import { redactedLetter } from '../redacted-letter.ts'
import { revealOptions, viewOf } from '../reveal-options.ts'
import { safeBlock, safeJson, safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { undeliverable } from '../undeliverable.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost dlq show <id>` */
export const dlqShowCommand: Command = defineCommand({
  name: 'dlq show',
  summary: {
    en: 'Shows one dead letter with its payload and every failed attempt',
    ko: '데드 레터 하나를 페이로드, 모든 실패 기록과 함께 보여 줍니다',
  },
  operands: { id: deadLetterOperand },
  options: { config: catalogueOption, ...revealOptions },
  run: async (invocation) => {
    const { terminal, globals, values, messages } = invocation
    const view = viewOf(values, 'dlq show', invocation)
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const letter = redactedLetter(await database.deadLettersBy(known).show(values.id, view))
      if (globals.json) terminal.printJson(letter)
      else {
        printLetter(letter, invocation)
        if (!letter.resolved) printWhatNext(letter.id, await undeliverable(letter, database), invocation)
      }
      if (known === undefined && view.reveal === undefined) terminal.note(messages.care.maskedWhole)
      return 0
    })
  },
})

function printLetter(letter: DeadLetter, invocation: Invocation<unknown>): void {
  const { terminal, messages } = invocation
  const { deadLetters } = messages
  terminal.print(terminal.style('title', deadLetters.title(letter.id)))
  const facts = factsOf(letter, invocation)
  const width = Math.max(...facts.map(([name]) => displayWidth(name)))
  for (const [name, value] of facts) terminal.print(`${pad(name, width)}  ${safeLine(value)}`)
  printBlock(deadLetters.fields.headers, letter.headers, invocation)
  printBlock(deadLetters.fields.payload, letter.payload, invocation)
  printHistory(letter, invocation)
}

function printWhatNext(
  id: string,
  why: 'unmatched' | 'retired' | null,
  { terminal, messages }: Invocation<unknown>,
): void {
  const { whatNext, cannotRetry } = messages.deadLetters
  terminal.note(`\n${why === null ? whatNext(id) : cannotRetry[why](id)}`)
}

function factsOf(
  letter: DeadLetter,
  { messages, formats }: Invocation<unknown>,
): readonly (readonly [string, string])[] {
  const { care } = messages
  const { fields, closedBy, open, redriveNever } = messages.deadLetters
  const state =
    letter.resolvedAt === null
      ? open
      : `${closedBy(letter.resolution, letter.resolvedBy ?? '')}, ${formats.time(letter.resolvedAt)}`
  const redriveOf = (at: Date | 'never'): string => (at === 'never' ? redriveNever : formats.time(at))
  return [
    [fields.subscription, letter.subscription],
    [fields.event, `${letter.eventType} v${letter.schemaVersion}, ${letter.eventId}`],
    [fields.stream, letter.stream],
    [fields.aggregate, `${letter.aggregateType}:${letter.aggregateId}`],
    ...(letter.orderingKey === null ? [] : [[fields.orderingKey, letter.orderingKey] as const]),
    [fields.occurredAt, formats.time(letter.occurredAt)],
    [fields.failedAt, formats.time(letter.failedAt)],
    [fields.attempts, formats.count(attemptsOf(letter))],
    [care.fields.reason, `${letter.reason}: ${care.reasons[letter.reason]}`],
    [fields.error, `${letter.errorCode}: ${letter.errorMessage}`],
    [care.fields.fingerprint, letter.fingerprint],
    [fields.state, state],
    ...(letter.redriveAt === null ? [] : [[fields.redrive, redriveOf(letter.redriveAt)] as const]),
    ...(letter.note === null ? [] : [[fields.note, letter.note] as const]),
  ]
}

function printBlock(title: string, value: unknown, { terminal }: Invocation<unknown>): void {
  terminal.print(`\n${terminal.style('title', title)}\n${safeBlock(safeJson(value, 2))}`)
}

function printHistory(
  { attemptHistory }: DeadLetter,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  if (attemptHistory.length === 0) return
  const { historyColumns: columns, fields } = messages.deadLetters
  terminal.print(`\n${terminal.style('title', fields.history)}`)
  const head = [
    { title: columns.attempt, align: 'right' as const },
    { title: columns.at },
    { title: columns.worker },
    { title: columns.took, align: 'right' as const },
    { title: columns.error, elastic: true },
  ]
  const rows = attemptHistory.map((record) =>
    [
      formats.count(record.attempt),
      formats.time(new Date(record.at)),
      record.worker,
      formats.latency(record.durationMs),
      `${record.code}: ${record.message}`,
    ].map(safeLine),
  )
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
}
