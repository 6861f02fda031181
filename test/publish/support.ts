import type pg from 'pg'
import { z } from 'zod'
import { defineEvents } from '../../src/event/define-events.ts'
import { InvalidEventError } from '../../src/event/errors.ts'
import type { NewEvent } from '../../src/event/event.ts'
import type { EventBus } from '../../src/publish/event-bus.ts'
import { createPublisher, type PublisherOptions } from '../../src/publish/publisher.ts'
import { DuplicateEventError, NotInTransactionError } from '../../src/runtime/errors.ts'
import type { PublishStore } from '../../src/store/publish-store.ts'
import type { Transaction } from '../../src/store/transaction.ts'

export const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
export const UUID = '0198C0DE-0000-7000-8000-00000000000A'

/** The catalogue of the publisher's tests. */
export const events = defineEvents({
  OrderPlaced: { stream: 'shop.order.event', aggregate: 'order', schema: z.object({ total: z.number() }) },
  LedgerPosted: {
    stream: 'ledger-events',
    aggregate: 'TRANSACTION',
    storedAs: 'LEDGER_POSTED',
    version: 2,
    schema: z.object({ accountId: z.string() }),
    orderingKey: ({ accountId }) => accountId,
    sequence: true,
  },
})
export type Events = typeof events

/** A store that keeps what it is given, in the order of calls. */
export class FakeStore implements PublishStore<Transaction> {
  readonly calls: string[] = []
  readonly written: NewEvent[] = []
  inTransaction = true

  async assertInTransaction(): Promise<void> {
    this.calls.push('assertInTransaction')
    if (!this.inTransaction) throw new NotInTransactionError()
  }

  async insertEvents(
    _tx: Transaction,
    given: readonly NewEvent[],
    { onDuplicate }: { readonly onDuplicate: 'error' | 'ignore' },
  ): Promise<{ readonly inserted: number }> {
    this.calls.push(`insertEvents ${given.length} ${onDuplicate}`)
    const known = new Set(this.written.map((event) => event.eventId))
    const duplicates = given.filter((event) => known.has(event.eventId))
    if (onDuplicate === 'error' && duplicates.length > 0) {
      throw new DuplicateEventError(duplicates.map((event) => event.eventId))
    }
    const fresh = given.filter((event) => !known.has(event.eventId))
    this.written.push(...fresh)
    return { inserted: fresh.length }
  }
}

/** Passes for a client inside a transaction. */
export const tx: Transaction = { query: async () => ({ rows: [], rowCount: 0 }) }

/** A publisher on a store of its own. */
export function setup(options: Partial<PublisherOptions<Events, Transaction>> = {}): {
  readonly store: FakeStore
  readonly bus: EventBus<Events, Transaction>
} {
  const store = new FakeStore()
  return { store, bus: createPublisher({ catalogue: events, store, ...options }) }
}

/** Where the problems are, with the index of the event in a batch. */
export async function problemsOf(publishing: Promise<unknown>): Promise<readonly string[]> {
  const error: unknown = await publishing.catch((thrown: unknown) => thrown)
  if (!(error instanceof InvalidEventError)) throw new Error('expected an InvalidEventError')
  return error.problems.map(({ index, path }) => (index === undefined ? path : `[${index}] ${path}`))
}

/** Counts what the server answers to a client, one for each round trip. */
export function roundTrips(client: pg.PoolClient): () => number {
  let answers = 0
  const { connection } = client as unknown as {
    connection: { on(event: string, listener: () => void): void }
  }
  connection.on('readyForQuery', () => {
    answers += 1
  })
  return () => answers
}
