import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import type { MemoryStore } from '../queue/memory-store.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'

/** A worker whose subscription goes on joining until the test says otherwise. */
function setup() {
  const memory = memoryOutbox({
    onOpen: (store) => {
      store.joining = ['things']
    },
  })
  const observed: WorkerEvent[] = []
  const things = memory.outbox.subscription('things', { on: { ThingHappened: async () => {} } })
  const worker = memory.outbox.worker([things], { observers: [(event) => void observed.push(event)] })
  const active = worker.active()
  const waits = (): readonly WorkerEvent[] => observed.filter(({ kind }) => kind === 'joiningWaits')
  return { ...memory, worker, active, waits, store: memory.stores[0] as MemoryStore }
}

describe('a worker whose subscription is joining', () => {
  test('and which is stopped tells whoever waits for it, instead of nobody for ever', async () => {
    const { clock, worker, active } = setup()
    const outcome = Promise.allSettled([active])
    await clock.advance(100)
    await Promise.all([worker.stop(), clock.advance(100)])
    expect(await outcome).toMatchObject([
      {
        status: 'rejected',
        reason: { code: 'INVALID_STATE', message: expect.stringContaining('had joined') },
      },
    ])
  })

  test('names the transaction it waits for, once for each, and none while it is quick', async () => {
    const { clock, worker, active, waits, store } = setup()
    store.waitsFor = { pid: 1, name: 'report', seconds: 60 }
    await clock.advance(4_000)
    expect(waits()).toEqual([])
    await clock.advance(60_000)
    expect(waits()).toEqual([{ kind: 'joiningWaits', subscriptions: ['things'], waitsFor: store.waitsFor }])
    store.waitsFor = { pid: 2, name: null, seconds: null }
    await advanceUntil(clock, () => waits().length === 2)
    store.joining = []
    await Promise.all([active, clock.advance(1_000)])
    expect(waits()).toHaveLength(2)
    await Promise.all([worker.stop(), clock.advance(100)])
  })
})
