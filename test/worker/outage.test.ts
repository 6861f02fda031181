import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'

function setup(order: 'none' | 'aggregate' = 'none') {
  const isOrdered = order !== 'none'
  const memory = memoryOutbox(isOrdered ? { lanes: 1 } : {})
  const observed: WorkerEvent[] = []
  let runs = 0
  const things = memory.outbox.subscription('things', {
    ...(isOrdered ? { order, lanes: 1 } : {}),
    on: {
      ThingHappened: () => {
        runs += 1
      },
    },
  })
  const worker = memory.outbox.worker([things], { observers: [(event) => void observed.push(event)] })
  const errors = (during: string): number =>
    observed.filter((event) => event.kind === 'error' && event.during === during).length
  return { ...memory, worker, observed, errors, runs: () => runs }
}

describe('W11 a worker whose database goes away', () => {
  test('says so once, stays up, and goes on by itself', async () => {
    const { clock, worker, tables, stores, errors, runs } = setup()
    await worker.start()
    const [store] = stores
    if (store === undefined) throw new Error('no store')
    store.interpose = () => {
      throw new Error('connection refused')
    }
    await clock.advance(60_000)
    const tries = store.calls.filter((call) => call === 'claim').length
    expect(errors('claim')).toBe(1)
    expect(errors('heartbeat')).toBe(1)
    expect(errors('joining')).toBe(1)
    expect(errors('recovery')).toBe(1)
    expect(tries).toBeLessThan(40)
    tables.publish()
    store.interpose = () => {}
    await clock.advance(6_500)
    expect(runs()).toBe(1)
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
  })

  test('for one statement only does everything else', async () => {
    const { clock, worker, tables, stores, errors, runs } = setup()
    await worker.start()
    const [store] = stores
    if (store === undefined) throw new Error('no store')
    store.interpose = (operation) => {
      if (operation === 'advanceJoining') throw new Error('permission denied')
    }
    await advanceUntil(clock, () => errors('joining') === 1)
    Object.assign(tables.publish(), { status: 'PROCESSING', lockedUntilMs: -1, token: 99, attempts: 1 })
    await advanceUntil(clock, () => runs() === 1)
    expect(errors('joining')).toBe(1)
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
  })

  test('W12 writes results down when it is back, without running anything again', async () => {
    const { clock, worker, tables, stores, runs, errors } = setup()
    await worker.start()
    const [store] = stores
    if (store === undefined) throw new Error('no store')
    store.interpose = (operation) => {
      if (operation === 'settle') throw new Error('connection refused')
    }
    for (let n = 0; n < 5; n += 1) tables.publish()
    await clock.advance(20_000)
    expect(tables.counts()).toEqual({ PROCESSING: 5 })
    store.interpose = () => {}
    await advanceUntil(clock, () => tables.counts()['DONE'] === 5)
    expect(runs()).toBe(5)
    expect(errors('settle')).toBe(1)
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
  })

  test('a result that was written although its answer was lost is no lost lease', async () => {
    const { clock, worker, tables, stores, observed } = setup()
    await worker.start()
    const [store] = stores
    if (store === undefined) throw new Error('no store')
    let cuts = 1
    store.interpose = (operation, when) => {
      if (operation !== 'settle' || when !== 'after' || cuts === 0) return
      cuts -= 1
      throw new Error('connection cut')
    }
    tables.publish()
    await clock.advance(2_000)
    expect(observed.filter(({ kind }) => kind === 'leaseLost')).toEqual([])
    expect(observed.filter(({ kind }) => kind === 'handled')).toHaveLength(1)
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
  })

  test.each(['none', 'aggregate'] as const)(
    'order %s: nor is it one for a heartbeat that finds it written before its answer is known to be lost',
    async (order) => {
      const { clock, worker, tables, stores, observed, runs } = setup(order)
      await worker.start()
      const [store] = stores
      if (store === undefined) throw new Error('no store')
      let beats = 0
      let cuts = 1
      store.interpose = async (operation, when) => {
        if (operation === 'heartbeat' && when === 'after') beats += 1
        if (operation !== 'settle' || when !== 'after' || cuts === 0) return
        cuts -= 1
        const beatsBefore = beats
        while (beats < beatsBefore + 2) await clock.sleep(100)
        throw new Error('connection cut')
      }
      tables.publish()
      await advanceUntil(clock, () => cuts === 0)
      tables.publish()
      tables.publish()
      await advanceUntil(clock, () => tables.counts()['DONE'] === 3)
      await clock.advance(2_000)
      expect(observed.filter(({ kind }) => kind === 'leaseLost')).toEqual([])
      expect(observed.filter(({ kind }) => kind === 'handled')).toHaveLength(3)
      expect(runs()).toBe(3)
      const stopped = worker.stop()
      await clock.advance(100)
      await stopped
    },
  )
})
