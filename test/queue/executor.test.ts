import { describe, expect, test } from 'vitest'
import type { DeliveryOutcome } from '../../src/delivery/delivery.ts'
import { Executor } from '../../src/queue/executor.ts'
import { FifoBacklog } from '../../src/queue/fifo-backlog.ts'
import { SoloGate } from '../../src/runtime/gate.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'
import { type Deferred, deferred, heldAt, turn } from './fakes.ts'

const HANDLED: DeliveryOutcome = { kind: 'handled' }

function setup({ concurrency = 2, sync = false, good = () => true }: Setup = {}) {
  const clock = new ManualClock()
  const gate = new SoloGate()
  const backlog = new FifoBacklog<LaneDelivery>()
  const running = new Map<number, Deferred<DeliveryOutcome>>()
  const ended: [number, string][] = []
  let idles = 0
  const executor = new Executor<LaneDelivery>({
    backlog,
    soloGate: gate,
    clock,
    concurrency,
    dispatch: (delivery) => {
      if (sync) return HANDLED
      const outcome = deferred<DeliveryOutcome>()
      running.set(Number(delivery.position), outcome)
      return outcome.promise
    },
    isGood: (held) => good(Number(held.delivery.position)),
    onEnded: (held, { kind }) => void ended.push([Number(held.delivery.position), kind]),
    onTaken: () => {},
    onIdle: () => {
      idles += 1
    },
    onFault: (error) => {
      throw error
    },
  })
  const offer = (...positions: number[]): void => {
    backlog.offer(positions.map((position) => heldAt(position)))
    executor.pump()
  }
  const finish = async (position: number): Promise<void> => {
    running.get(position)?.resolve(HANDLED)
    running.delete(position)
    await turn()
  }
  return { clock, gate, backlog, executor, running, ended, offer, finish, idles: () => idles }
}

interface Setup {
  readonly concurrency?: number
  readonly sync?: boolean
  readonly good?: (position: number) => boolean
}

describe('the executor', () => {
  test('runs so many at once and takes the next when one is done', async () => {
    const { offer, finish, running, idles } = setup({ concurrency: 2 })
    offer(1, 2, 3)
    expect([...running.keys()]).toEqual([1, 2])
    await finish(2)
    expect([...running.keys()]).toEqual([1, 3])
    await finish(1)
    expect(idles()).toBe(0)
    await finish(3)
    expect(idles()).toBe(1)
  })

  test('takes handlers that finish at once without waiting in between', () => {
    const { offer, ended, idles } = setup({ sync: true })
    offer(...Array.from({ length: 1_000 }, (_, n) => n))
    expect(ended).toHaveLength(1_000)
    expect(idles()).toBe(1)
  })

  test('does not start what has no good lease any more, and says so', async () => {
    const { offer, ended, finish } = setup({ good: (position) => position !== 2 })
    offer(1, 2, 3)
    await finish(1)
    await finish(3)
    expect(ended).toContainEqual([2, 'interrupted'])
    expect(ended.filter(([, kind]) => kind === 'handled').map(([position]) => position)).toEqual([1, 3])
  })

  test('starts nothing while somebody is alone, and goes on afterwards', async () => {
    const { gate, offer, running, finish } = setup()
    const leave = await gate.exclusive()
    offer(1)
    await turn()
    expect(running.size).toBe(0)
    leave?.()
    await turn()
    expect([...running.keys()]).toEqual([1])
    await finish(1)
  })

  test('lets somebody be alone between two handlers', async () => {
    const { gate, offer, running, finish } = setup({ concurrency: 1 })
    offer(1, 2)
    const alone = gate.exclusive()
    await finish(1)
    const leave = await alone
    expect(running.size).toBe(0)
    leave?.()
    await turn()
    expect([...running.keys()]).toEqual([2])
  })

  test('closed, starts nothing more', async () => {
    const { gate, executor, backlog, offer, running } = setup()
    const leave = await gate.exclusive()
    offer(1)
    executor.close()
    backlog.close()
    leave?.()
    await turn()
    expect(running.size).toBe(0)
  })

  test('tells how many ended and for how long any was running', async () => {
    const { clock, executor, offer, finish } = setup({ concurrency: 2 })
    offer(1, 2)
    await clock.advance(100)
    await finish(1)
    expect(executor.takeSample()).toEqual({ ended: 1, busyMs: 100 })
    await clock.advance(50)
    await finish(2)
    await clock.advance(1_000)
    expect(executor.takeSample()).toEqual({ ended: 1, busyMs: 50 })
  })
})
