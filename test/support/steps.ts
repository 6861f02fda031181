import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Transaction } from '../../src/index.ts'
import { createOutbox, defineEvents, type Outbox, unchecked } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { PublishedEvent } from './history.ts'

/** What the events of fault tests carry: the n-th step of a walk. */
export interface Step {
  readonly seq: number
  /** True for one that kills the process that handles it. */
  readonly poison?: boolean
}

/** What code knew before a deploy. */
export const oldSteps = defineEvents({
  StepTaken: { stream: 'fault.step', aggregate: 'walk', schema: unchecked<Step>() },
})

/** What code knows now: one event more. */
export const steps = defineEvents({
  StepTaken: { stream: 'fault.step', aggregate: 'walk', schema: unchecked<Step>() },
  StepRetraced: { stream: 'fault.step', aggregate: 'walk', schema: unchecked<Step>() },
})

/** Either kind of step. */
export type StepName = 'StepTaken' | 'StepRetraced'
export type StepOutbox = Outbox<typeof steps, Transaction>

/** An outbox of steps on a schema. */
export function stepOutbox(pool: pg.Pool, schema: string): StepOutbox {
  return createOutbox({ store: postgresStore({ pool, schema }), events: steps })
}

/** Walks of equal length, all at once: the first step of each, then the second of each, and so on. */
export function walks(keys: number, length: number): readonly PublishedEvent[] {
  return Array.from({ length: keys * length }, (_, n) => ({
    eventId: randomUUID(),
    key: `walk-${n % keys}`,
    seq: Math.floor(n / keys),
  }))
}

/** How steps are published. */
export interface PublishSteps {
  /** @default 'StepTaken' */
  readonly type?: StepName
  /** The id of one that kills whoever handles it. */
  readonly poison?: string
  /** @default all of them */
  readonly perTransaction?: number
  /** Told of each transaction that failed, which is then run again. Without it, the first failure is thrown. */
  readonly onFailure?: (error: unknown) => void | Promise<void>
}

/** Publishes steps in order, in transactions of so many, each again under the same ids until it is known to be done. */
export async function publishSteps(
  outbox: StepOutbox,
  pool: pg.Pool,
  events: readonly PublishedEvent[],
  { type = 'StepTaken', poison, perTransaction = events.length, onFailure }: PublishSteps = {},
): Promise<void> {
  for (let first = 0; first < events.length; ) {
    const inputs = events.slice(first, first + perTransaction).map(({ eventId, key, seq }) => ({
      type,
      eventId,
      aggregateId: key,
      payload: eventId === poison ? { seq, poison: true } : { seq },
    }))
    try {
      await outbox.inTransaction(pool, (tx) => outbox.publishAll(tx, inputs, { onDuplicate: 'ignore' }))
      first += perTransaction
    } catch (error) {
      if (onFailure === undefined) throw error
      await onFailure(error)
    }
  }
}
