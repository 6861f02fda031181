import { describe, expect, test } from 'vitest'
import { NonRetryableError } from '../../src/runtime/errors.ts'
import { deferred } from '../queue/fakes.ts'
import type { MemoryStore } from '../queue/memory-store.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'

/** Shorter than the time after which a worker looks for what is parked behind nothing. */
const SOON = { mostMs: 1_000 }

/** A worker of an ordered subscription with one lane. Each event is run as `handle` says. */
async function ordered(handle: (position: number, run: number) => Promise<void> | void) {
  const memory = memoryOutbox({ lanes: 1 })
  const { clock, outbox, tables, stores } = memory
  tables.onDead = 'continue'
  const ran: number[] = []
  const things = outbox.subscription('things', {
    order: 'aggregate',
    lanes: 1,
    onDead: 'continue',
    concurrency: 10,
    on: {
      ThingHappened: async ({ position }) => {
        ran.push(Number(position))
        await handle(Number(position), ran.filter((one) => one === Number(position)).length)
      },
    },
  })
  const worker = outbox.worker([things])
  await worker.start()
  await clock.advance(100)
  const stop = async (): Promise<void> => {
    const stopped = worker.stop()
    await clock.advance(1_000)
    await stopped
  }
  const store = stores[0] as MemoryStore
  return { clock, tables, outbox, store, ran, stop }
}

/** Holds the next call of this operation before it has its effect. */
function hold(store: MemoryStore, operation: string) {
  const [begun, go] = [deferred(), deferred()]
  store.interpose = async (called, when) => {
    if (called !== operation || when !== 'before') return
    store.interpose = () => {}
    begun.resolve()
    await go.promise
  }
  return { begun: begun.promise, go: () => go.resolve() }
}

const settlements = ({ batches }: MemoryStore): readonly string[] =>
  batches.flat().map(({ delivery, settlement }) => `${delivery.position} ${settlement.kind}`)

describe('an event whose result is lost', () => {
  test('comes again with one that ran after it and died meanwhile, where a death lets its key go on', async () => {
    const dying = deferred()
    const s = await ordered(async (position, run) => {
      if (position !== 2 || run > 1) return
      await dying.promise
      throw new NonRetryableError('dead at once')
    })
    const settling = hold(s.store, 'settle')
    const [first, second] = [s.tables.publish('k'), s.tables.publish('k')]
    s.outbox.wake()
    await advanceUntil(s.clock, () => s.ran.includes(2))
    await settling.begun
    // Somebody has given it back since.
    Object.assign(first, { status: 'PENDING', held: true, nextRetryAtMs: s.tables.now, token: null })
    settling.go()
    await s.clock.advance(10)
    dying.resolve()
    await advanceUntil(s.clock, () => second.status === 'DONE' || second.status === 'DEAD')
    expect(s.ran).toEqual([1, 2, 1, 2])
    expect(settlements(s.store)).toContain('2 park')
    expect(s.tables.faults).toEqual([])
    await s.stop()
  })
})

describe('an event that is given back because an earlier one of its key cannot be written', () => {
  test('runs at once where that one was written before the return of this one was', async () => {
    const s = await ordered(() => {})
    const first = s.tables.publish('k')
    s.tables.lock(first, 12)
    s.outbox.wake()
    await advanceUntil(s.clock, () => s.store.batches.length === 1, SOON)
    // While another key is written, the first is let go and a later one of its key comes in: both wait for the settler.
    const settling = hold(s.store, 'settle')
    s.tables.publish('other')
    s.outbox.wake()
    await advanceUntil(s.clock, () => s.ran.includes(2), SOON)
    await s.clock.advance(10)
    await settling.begun
    s.tables.publish('k')
    s.outbox.wake()
    await s.clock.advance(20)
    const shared = s.store.calls.filter((call) => call === 'takeLanes').length
    settling.go()
    await advanceUntil(s.clock, () => s.ran.includes(3), SOON)
    expect(settlements(s.store).slice(0, 4)).toEqual(['1 done', '2 done', '1 done', '3 park'])
    expect(s.store.calls.filter((call) => call === 'takeLanes')).toHaveLength(shared)
    await s.stop()
  })
})
