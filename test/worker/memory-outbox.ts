import { defineEvents } from '../../src/event/define-events.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { Random } from '../../src/runtime/random.ts'
import type { OutboxStore } from '../../src/store/store.ts'
import { noJitter } from '../queue/fakes.ts'
import { MemoryStore } from '../queue/memory-store.ts'
import { MemoryTables } from '../queue/memory-tables.ts'

export const events = defineEvents({
  ThingHappened: { stream: 'test', aggregate: 'thing', schema: unchecked<{ n: number }>() },
  OtherHappened: { stream: 'test', aggregate: 'thing', schema: unchecked<{ n: number }>() },
})

/** An outbox over tables in memory, for timing that a database cannot step. Events are put into the tables directly. */
export interface MemoryOutbox {
  readonly clock: ManualClock
  readonly tables: MemoryTables
  readonly outbox: Outbox<typeof events, unknown>
  /** One for each worker that was started, in that order. */
  readonly stores: MemoryStore[]
}

export interface MemoryOutboxOptions {
  readonly lanes?: number
  readonly random?: Random
  /** Another process on the same tables, with a clock that follows theirs. */
  readonly beside?: { readonly outbox: MemoryOutbox; readonly clock: Clock }
  /** Told of every store that a worker opens, before it is used. */
  readonly onOpen?: (store: MemoryStore) => void
}

export function memoryOutbox({
  lanes = 0,
  random = noJitter,
  onOpen,
  beside,
}: MemoryOutboxOptions = {}): MemoryOutbox {
  const clock = beside?.outbox.clock ?? new ManualClock()
  const tables = beside?.outbox.tables ?? new MemoryTables(clock, lanes)
  const stores: MemoryStore[] = []
  const openWorker = (): MemoryStore => {
    const store = new MemoryStore(tables)
    stores.push(store)
    onOpen?.(store)
    return store
  }
  // Only what a worker needs; publishing is tested on a database.
  const store = { openWorker, notifyWorkers: async () => {} } as unknown as OutboxStore<unknown>
  const outbox = createOutbox({ store, events, clock: beside?.clock ?? clock, random })
  return { clock, tables, outbox, stores }
}

/** Moves time on in small steps until the condition holds; fails after so much of it. */
export async function advanceUntil(
  clock: ManualClock,
  condition: () => boolean,
  { stepMs = 5, mostMs = 120_000 }: { readonly stepMs?: number; readonly mostMs?: number } = {},
): Promise<void> {
  for (let elapsedMs = 0; elapsedMs < mostMs; elapsedMs += stepMs) {
    if (condition()) return
    await clock.advance(stepMs)
  }
  throw new Error(`Waited ${mostMs} ms of the manual clock in vain`)
}
