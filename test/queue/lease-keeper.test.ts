import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { Hand, type Held } from '../../src/queue/hand.ts'
import { LeaseKeeper } from '../../src/queue/lease-keeper.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { HeartbeatReport, HeartbeatRequest, LaneDelivery } from '../../src/store/queue-store.ts'
import { deliveryAt, noJitter, positionsOf } from './fakes.ts'

const LEASE_MS = 30_000
const NOTHING_LOST: HeartbeatReport = { lostDeliveries: [], lostLanes: [], busyDeliveries: [] }

type Answer = (request: HeartbeatRequest) => Promise<HeartbeatReport>

/** What the keeper asked of its store, did to its holder and told its observer. */
class Scene {
  readonly clock = new ManualClock()
  readonly hand = new Hand<LaneDelivery>({ leaseMs: LEASE_MS, marginMs: 3_000 })
  readonly beats: HeartbeatRequest[] = []
  readonly lost: number[] = []
  readonly expired: number[] = []
  readonly events: WorkerEvent[] = []
  answer: Answer = async () => NOTHING_LOST

  keeper(): LeaseKeeper {
    return new LeaseKeeper({
      store: {
        heartbeat: (request) => {
          this.beats.push(request)
          return this.answer(request)
        },
      },
      workerId: 'w1',
      host: 'here',
      pid: 1,
      leaseMs: LEASE_MS,
      holders: [
        {
          isServing: true,
          subscriptionId: 1,
          leases: () => ({ held: this.hand.extendable(), lanes: [] }),
          lose: (held) =>
            void this.lost.push(...positionsOf(this.hand.lose(held as readonly Held<LaneDelivery>[]))),
          expire: (nowMs) => void this.expired.push(...positionsOf(this.hand.expire(nowMs))),
        },
      ],
      clock: this.clock,
      random: noJitter,
      observer: (event) => void this.events.push(event),
    })
  }
}

function setup() {
  const scene = new Scene()
  const { clock, hand, beats, lost, expired, events } = scene
  const stop = new AbortController()
  const ended = scene.keeper().run(stop.signal)
  const take = (...positions: number[]) =>
    hand.take(
      positions.map((position) => deliveryAt(position)),
      clock.monotonicMs(),
    )
  const answerWith = (next: Answer): void => {
    scene.answer = next
  }
  const end = async (): Promise<void> => {
    stop.abort()
    await ended
  }
  return { clock, hand, beats, lost, expired, events, take, answerWith, end }
}

describe('the lease keeper', () => {
  test('W1 extends everything in hand three times per lease, however long handlers take', async () => {
    const { clock, beats, expired, take, end } = setup()
    take(1, 2)
    await clock.advance(10 * LEASE_MS)
    expect(beats.length).toBeGreaterThanOrEqual(30)
    expect(beats.every(({ deliveries }) => deliveries.length === 2)).toBe(true)
    expect(expired).toEqual([])
    await end()
  })

  test('gives leases up before they end when heartbeats fail', async () => {
    const { clock, hand, expired, events, take, answerWith, end } = setup()
    const [held] = take(1)
    answerWith(() => Promise.reject(new Error('connection cut')))
    await clock.advance(26_000)
    expect(expired).toEqual([])
    await clock.advance(2_000)
    expect(expired).toEqual([1])
    expect(held !== undefined && hand.isGood(held, clock.monotonicMs())).toBe(false)
    expect(events.filter(({ kind }) => kind === 'error')).toHaveLength(1)
    await end()
  })

  test('W13 gives leases up when a heartbeat never answers', async () => {
    const { clock, expired, take, answerWith, end } = setup()
    take(1)
    answerWith(() => new Promise(() => {}))
    await clock.advance(LEASE_MS)
    expect(expired).toEqual([1])
    void end()
  })

  test('counts from when a heartbeat was sent, not from when it was answered', async () => {
    const { clock, expired, take, answerWith, end } = setup()
    take(1)
    let beats = 0
    answerWith(async () => {
      beats += 1
      if (beats > 1) throw new Error('connection cut')
      await clock.sleep(15_000)
      return NOTHING_LOST
    })
    await clock.advance(10_000 + 27_000)
    expect(expired).toEqual([])
    await clock.advance(1_001)
    expect(expired).toEqual([1])
    await end()
  })

  test('a heartbeat that takes its time does not put the next one off', async () => {
    const { clock, beats, take, answerWith, end } = setup()
    take(1)
    answerWith(async () => {
      await clock.sleep(8_000)
      return NOTHING_LOST
    })
    await clock.advance(4 * LEASE_MS - 1_000)
    expect(beats.length).toBeGreaterThanOrEqual(11)
    await end()
  })

  test('what was claimed of an old lane while a heartbeat was under way does not wait for the next in turn', async () => {
    const { clock, hand, beats, expired, answerWith, end } = setup()
    answerWith(async () => {
      // Of a lane that was extended when the last heartbeat but one was sent, a third of a lease ago and more.
      if (beats.length === 2) hand.take([deliveryAt(1)], 10_000)
      if (beats.length === 3) await clock.sleep(10_000)
      return NOTHING_LOST
    })
    await clock.advance(20_000)
    expect(beats).toHaveLength(2)
    // Half a lease after it was confirmed it is named, and not only at 30 s, when the next one would be due.
    await clock.advance(7_000)
    expect(beats.map(({ deliveries }) => deliveries.length)).toEqual([0, 0, 1])
    await clock.advance(2 * LEASE_MS)
    expect(expired).toEqual([])
    await end()
  })

  test('one that stays locked makes no more heartbeats than others', async () => {
    const { clock, hand, beats, answerWith, end } = setup()
    hand.take([deliveryAt(1)], -10_000)
    answerWith(async ({ deliveries }) => ({ ...NOTHING_LOST, busyDeliveries: deliveries }))
    await clock.advance(16_000)
    expect(beats.length).toBeLessThanOrEqual(2)
    await end()
  })

  test('tells its holders what was lost', async () => {
    const { clock, lost, take, answerWith, end } = setup()
    take(1, 2)
    answerWith(async ({ deliveries }) => ({ ...NOTHING_LOST, lostDeliveries: deliveries.slice(0, 1) }))
    await clock.advance(10_000)
    expect(lost).toEqual([1])
    await end()
  })

  test('does not take what a transaction has locked for extended, nor for lost', async () => {
    const { clock, lost, expired, take, answerWith, end } = setup()
    take(1, 2)
    answerWith(async ({ deliveries }) => ({ ...NOTHING_LOST, busyDeliveries: deliveries.slice(0, 1) }))
    await clock.advance(26_000)
    expect(expired).toEqual([])
    await clock.advance(2_000)
    expect(expired).toEqual([1])
    expect(lost).toEqual([])
    await end()
  })

  test('does not take a delivery for lost because of an older lease on it whose end is not confirmed', async () => {
    const { clock, hand, lost, take, answerWith, end } = setup()
    const [older] = take(1)
    const [newer] = take(1)
    answerWith(async ({ deliveries }) => ({ ...NOTHING_LOST, lostDeliveries: deliveries.slice(0, 1) }))
    await clock.advance(10_000)
    expect(lost).toEqual([1])
    expect([older?.lost, newer?.lost]).toEqual([true, false])
    expect(hand.size).toBe(2)
    await end()
  })

  test('does not take a delivery that was settled and claimed again meanwhile for lost', async () => {
    const { clock, hand, lost, take, answerWith, end } = setup()
    const [before] = take(1)
    answerWith(async ({ deliveries }) => {
      if (before !== undefined) hand.drop(before)
      take(1)
      return { ...NOTHING_LOST, lostDeliveries: deliveries }
    })
    await clock.advance(10_000)
    expect(lost).toEqual([])
    expect(hand.size).toBe(1)
    await end()
  })
})
