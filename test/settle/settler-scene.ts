import type { Settled } from '../../src/delivery/delivery.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { Settler } from '../../src/settle/settler.ts'
import type { SettleReport } from '../../src/store/queue-store.ts'
import { type Deferred, deferred, deliveryAt, noJitter, positionsOf } from '../queue/fakes.ts'

/** A batch that is written without anything to tell. */
export const WRITTEN: SettleReport = { lost: [], over: [], dead: [], committed: [], busy: [] }

function settled(position: number): Settled {
  return { delivery: deliveryAt(position), settlement: { kind: 'done' }, durationMs: 1 }
}

/** One write that waits for its answer. */
interface Write {
  readonly positions: number[]
  readonly batch: readonly Settled[]
  readonly answer: Deferred<SettleReport>
}

/** A settler and all that it told. */
interface Scene {
  readonly clock: ManualClock
  readonly giveUp: AbortController
  readonly writes: readonly Write[]
  readonly written: readonly { readonly positions: number[]; readonly again: boolean }[]
  readonly refused: readonly { readonly position: string; readonly error: unknown }[]
  readonly waiting: readonly number[]
  readonly outrun: readonly number[]
  readonly givenUp: readonly number[]
  readonly outages: readonly unknown[]
  readonly settler: Settler<Settled>
  readonly add: (...positions: number[]) => void
  /** Results of one ordering key. */
  readonly addOf: (key: string, ...positions: number[]) => void
}

/** A settler whose writes are answered by the test. */
export function setup({ batchSize = 100, together = 100 } = {}): Scene {
  const clock = new ManualClock()
  const giveUp = new AbortController()
  const writes: Write[] = []
  const written: { readonly positions: number[]; readonly again: boolean }[] = []
  const refused: { readonly position: string; readonly error: unknown }[] = []
  const givenUp: number[] = []
  const outages: unknown[] = []
  const [waiting, outrun]: [number[], number[]] = [[], []]
  const keys = new Map<number, string>()
  const settler = new Settler<Settled>({
    settle: (batch) => {
      const answer = deferred<SettleReport>()
      writes.push({ positions: positionsOf(batch), batch, answer })
      return answer.promise
    },
    clock,
    random: noJitter,
    batchSize,
    together: (items) => Math.min(items.length, together),
    turnOf: ({ delivery: { position } }) => keys.get(Number(position)) ?? null,
    giveUp: giveUp.signal,
    onSettled: (batch, { lost }, mayBeWritten) => {
      written.push({ positions: positionsOf(batch), again: batch.some(mayBeWritten) })
      return batch.filter(({ delivery }) => lost.some(({ position }) => position === delivery.position))
    },
    onRefused: ({ delivery: { position } }, error) => void refused.push({ position, error }),
    onWaiting: ({ delivery: { position } }) => void waiting.push(Number(position)),
    onOutrun: (behind) => {
      outrun.push(...positionsOf(behind))
      return []
    },
    onGivenUp: (batch) => void givenUp.push(...positionsOf(batch)),
    onOutage: (error) => void outages.push(error),
  })
  const add = (...positions: number[]): void => {
    for (const position of positions) settler.add(settled(position))
  }
  const addOf = (key: string, ...positions: number[]): void => {
    for (const position of positions) keys.set(position, key)
    add(...positions)
  }
  return {
    clock,
    giveUp,
    writes,
    written,
    refused,
    waiting,
    outrun,
    givenUp,
    outages,
    settler,
    add,
    addOf,
  }
}
