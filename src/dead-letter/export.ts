import type { Catalogue } from '../event/catalogue.ts'
import { defaultOrderingKey, type JsonValue } from '../event/event.ts'
import { maskEvent } from '../event/mask-payload.ts'
import type { DeadLetter, DeadLetterFilter, DeadLetterStore } from '../store/dead-letter-store.ts'

/** Few enough that a page of the largest payloads fits into memory. */
const PAGE = 50

/** Every dead letter of the filter, newest first, page by page; masked for exports where there is a catalogue. */
export async function* exportDeadLetters(
  store: Pick<DeadLetterStore, 'listDeadLetters'>,
  filter: DeadLetterFilter,
  catalogue: Catalogue | null,
): AsyncGenerator<DeadLetter, void, undefined> {
  let before: string | undefined
  for (;;) {
    const page = await store.listDeadLetters({
      ...filter,
      limit: PAGE,
      ...(before === undefined ? {} : { before }),
    })
    for (const letter of page) yield catalogue === null ? letter : masked(catalogue, letter)
    before = page.at(-1)?.id
    if (page.length < PAGE) return
  }
}

function masked(catalogue: Catalogue, letter: DeadLetter): DeadLetter {
  const { eventType: type, aggregateType, aggregateId, failedAt: createdAt } = letter
  const orderingKey = letter.orderingKey ?? defaultOrderingKey(aggregateType, aggregateId)
  const event = { ...letter, type, orderingKey, sequence: null, createdAt }
  const { payload } = maskEvent(catalogue, event, 'export')
  // What was masked is still the JSON that was read.
  return { ...letter, payload: payload as JsonValue }
}
