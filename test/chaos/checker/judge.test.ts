import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Entry } from './entry.ts'
import { judge } from './judge.ts'
import { anomaliesOf, event, fault, LEASE_MS, published, run, subscribed } from './lines.ts'

const ordered = subscribed({ order: 'key' })
const [a, b, c] = [event('a'), event('b'), event('c')]

describe('a history', () => {
  test('in which each committed event is handled once, after its commit, is clean', () => {
    const lines = [ordered, ...published(10, [a, b]), ...run(20, a), ...run(30, b)]
    expect(judge(lines, { leaseMs: LEASE_MS })).toMatchObject({
      ok: true,
      totals: { committed: 2, rolledBack: 0, unknown: 0, runs: 2, faults: 0 },
    })
  })

  test('is judged the same in whatever order its lines come', () => {
    const lines = [ordered, ...published(10, [a, b]), ...run(20, b), ...published(30, [c], 'rolledBack')]
    const verdict = judge(lines, { leaseMs: LEASE_MS })
    fc.assert(
      fc.property(fc.shuffledSubarray(lines, { minLength: lines.length }), (shuffled) => {
        expect(judge(shuffled, { leaseMs: LEASE_MS })).toEqual(verdict)
      }),
    )
  })
})

describe('lost and stuck', () => {
  test('a committed event that nobody handled is lost', () => {
    expect(anomaliesOf(subscribed(), published(10, [a]))).toEqual({ lost: 1 })
  })

  test('each subscription that takes it has to get it', () => {
    const other = subscribed({ subscription: 'other' })
    expect(anomaliesOf(subscribed(), other, published(10, [a]), run(20, a))).toEqual({ lost: 1 })
  })

  test('it is owed only by subscriptions that took its type when it was begun', () => {
    const late = subscribed({ subscription: 'late', at: 11 })
    const picky = subscribed({ subscription: 'picky', types: ['Rested'] })
    expect(anomaliesOf(subscribed(), late, picky, published(10, [a]), run(20, a))).toEqual({})
  })

  test('one whose every run failed or was cut short is lost as well', () => {
    const runs = [...run(20, a, { outcome: 'failed' }), ...run(30, a, { until: null })]
    expect(anomaliesOf(subscribed(), published(10, [a]), runs)).toEqual({ lost: 1 })
  })

  test('one that the outbox still holds is stuck instead, handled or not', () => {
    const left = (eventId: string): Entry => ({
      kind: 'left',
      at: 90,
      subscription: 's',
      eventId,
      status: 'PENDING',
    })
    const lines = [subscribed(), ...published(10, [a, b]), ...run(20, b), left('a'), left('b')]
    expect(anomaliesOf(lines)).toEqual({ stuck: 2 })
  })

  test('a dead letter is neither', () => {
    const aside: Entry = { kind: 'setAside', at: 30, subscription: 's', eventId: 'a' }
    const failed = run(20, a, { outcome: 'failed' })
    expect(anomaliesOf(subscribed(), published(10, [a]), failed, aside)).toEqual({})
  })
})

describe('phantom and early', () => {
  test('an event of a transaction that rolled back is a phantom, and so is one of nobody', () => {
    const runs = [...run(20, a), ...run(21, b)]
    expect(anomaliesOf(subscribed(), published(10, [a], 'rolledBack'), runs)).toEqual({ phantom: 2 })
  })

  test('so is one whose publisher vanished without asking for the commit', () => {
    const [begun] = published(10, [a])
    expect(anomaliesOf(subscribed(), begun as Entry, run(20, a))).toEqual({ phantom: 1 })
  })

  test.each(['unknown', null] as const)('outcome %s: it may be there or not', (outcome) => {
    expect(anomaliesOf(subscribed(), published(10, [a], outcome))).toEqual({})
    expect(anomaliesOf(subscribed(), published(10, [a], outcome), run(20, a))).toEqual({})
  })

  test('but if anything of such a transaction is there, all of it must be, for everybody', () => {
    const other = subscribed({ subscription: 'other' })
    const lines = [subscribed(), other, ...published(10, [a, b], 'unknown'), ...run(20, a)]
    expect(anomaliesOf(lines)).toEqual({ lost: 3 })
  })

  test('a retry that was told of its commit settles the matter', () => {
    const retry = published(10, [a], 'unknown').concat(
      { kind: 'committing', at: 40, transaction: 't10' },
      { kind: 'concluded', at: 41, transaction: 't10', outcome: 'committed' },
    )
    expect(anomaliesOf(subscribed(), retry)).toEqual({ lost: 1 })
    expect(anomaliesOf(subscribed(), retry, run(20, a))).toEqual({})
  })

  test('a refusal counts for all attempts before it, but not for one whose outcome was unknown', () => {
    const again: Entry[] = [
      { kind: 'committing', at: 40, transaction: 't10' },
      { kind: 'concluded', at: 41, transaction: 't10', outcome: 'rolledBack' },
    ]
    expect(anomaliesOf(subscribed(), published(10, [a], null), again, run(50, a))).toEqual({ phantom: 1 })
    expect(anomaliesOf(subscribed(), published(10, [a], 'unknown'), again, run(50, a))).toEqual({})
  })

  test('seen before anybody asked for its commit is early', () => {
    expect(anomaliesOf(subscribed(), published(10, [a]), run(10.5, a))).toEqual({ early: 1 })
  })
})

describe('identity', () => {
  test.each(['type', 'key', 'digest'] as const)('another %s is a change', (field) => {
    expect(anomaliesOf(subscribed(), published(10, [a]), run(20, { ...a, [field]: 'x' }))).toEqual({
      identity: 1,
    })
  })

  test('so is another number at the second sight', () => {
    const runs = [...run(20, a, { sequence: 1, outcome: 'failed' }), ...run(30, a, { sequence: 2 })]
    expect(anomaliesOf(subscribed(), published(10, [a]), runs)).toEqual({ identity: 1 })
  })
})

describe('order', () => {
  const inTurn = [...published(10, [a]), ...published(20, [b])]

  test('the later of two first is an inversion on an ordered subscription, and nothing on another', () => {
    const runs = [...run(30, b), ...run(40, a)]
    expect(anomaliesOf(ordered, inTurn, runs)).toEqual({ inversion: 1 })
    expect(anomaliesOf(subscribed(), inTurn, runs)).toEqual({})
  })

  test('neither is it where their keys differ, or where their transactions ran at the same time', () => {
    const apart = event('b', 'other')
    expect(
      anomaliesOf(ordered, published(10, [a]), published(20, [apart]), run(30, apart), run(40, a)),
    ).toEqual({})
    const together = [...published(10, [a]), ...published(11, [b])]
    expect(anomaliesOf(ordered, together, run(30, b), run(40, a))).toEqual({})
  })

  test('one transaction keeps its own order', () => {
    expect(anomaliesOf(ordered, published(10, [a, b]), run(30, b), run(40, a))).toEqual({ inversion: 1 })
  })

  test('numbers decide where there are any', () => {
    const together = [...published(10, [a]), ...published(11, [b])]
    const runs = [...run(30, b, { sequence: 2 }), ...run(40, a, { sequence: 1 })]
    expect(anomaliesOf(ordered, together, runs)).toEqual({ inversion: 1 })
  })

  test('to begin before the one before is done is an inversion too', () => {
    const runs = [...run(30, a, { outcome: 'failed' }), ...run(40, b), ...run(50, a)]
    expect(anomaliesOf(ordered, inTurn, runs)).toEqual({ inversion: 1 })
  })

  test('a late repetition of an earlier one is a duplicate, not an inversion', () => {
    const runs = [...run(30, a, { until: null }), ...run(50, a, { worker: 'x' }), ...run(60, b)]
    const late: Entry = { kind: 'finished', at: 900, run: 's-30-w', outcome: 'done' }
    expect(anomaliesOf(ordered, inTurn, runs, late, fault(31, 800, ['w'], 'stop'))).toEqual({})
  })

  test('to go on without one that never came is a gap, beside the loss', () => {
    expect(anomaliesOf(ordered, inTurn, run(30, b))).toEqual({ lost: 1, gap: 1 })
  })

  test('a hole in the numbers is a gap even if nobody knows what belongs there', () => {
    const lines = published(10, [a, b])
    const runs = [...run(30, a, { sequence: 1 }), ...run(40, b, { sequence: 3 })]
    expect(anomaliesOf(ordered, lines, runs)).toEqual({ gap: 1 })
    const rests = { ...event('r'), type: 'Rested' }
    const picky = subscribed({ order: 'key', types: ['Stepped'] })
    const everything = subscribed({ subscription: 'everything' })
    const rest = [...published(12, [rests]), ...run(35, rests, { sequence: 2, subscription: 'everything' })]
    const elsewhere = [
      ...run(31, a, { subscription: 'everything' }),
      ...run(41, b, { subscription: 'everything' }),
    ].map((entry) => (entry.kind === 'seen' ? { ...entry, sequence: entry.eventId === 'a' ? 1 : 3 } : entry))
    expect(anomaliesOf(picky, everything, lines, runs, rest, elsewhere)).toEqual({})
  })
})

describe('duplicates', () => {
  const twice = [...published(10, [a]), ...run(20, a), ...run(1_500, a, { worker: 'x' })]

  test('handled again without a fault is a failure; after a failed attempt it is a retry', () => {
    expect(anomaliesOf(subscribed(), twice)).toEqual({ duplicate: 1 })
    expect(
      anomaliesOf(subscribed(), published(10, [a]), run(20, a, { outcome: 'failed' }), run(40, a)),
    ).toEqual({})
  })

  test('a fault of its worker in its window explains it', () => {
    const verdict = judge([subscribed(), ...twice, fault(26, 26, ['w'])], { leaseMs: LEASE_MS })
    expect(verdict).toMatchObject({
      ok: true,
      explained: { duplicates: [{ eventId: 'a', fault: 'kill@26' }] },
    })
  })

  test('and so does one up to a lease before it: a lease that was not extended lapses later', () => {
    const later = [...published(10, [a]), ...run(2_000, a), ...run(2_500, a, { worker: 'x' })]
    expect(anomaliesOf(subscribed(), later, fault(1_000, 1_000, ['w']))).toEqual({})
    expect(anomaliesOf(subscribed(), later, fault(990, 999, ['w']))).toEqual({ duplicate: 1 })
  })

  test.each([
    { title: 'of another worker', one: fault(26, 26, ['y']) },
    { title: 'that must harm nobody', one: fault(26, 26, []) },
    { title: 'after the repetition', one: fault(1_600, 1_600, null) },
    { title: 'long after the result was written', one: fault(1_100, 1_100, ['w']) },
  ])('a fault $title does not', ({ one }) => {
    expect(anomaliesOf(subscribed(), twice, one)).toEqual({ duplicate: 1 })
  })

  test('of how many runs a fault would explain a repetition is told beside the verdict', () => {
    const lines = [
      ...published(10, [a, b, c]),
      ...run(20, a),
      ...run(1_500, b),
      ...run(1_500, c, { worker: 'x' }),
    ]
    const shareWith = (...faults: readonly Entry[]): number =>
      judge([subscribed(), ...lines, ...faults], { leaseMs: LEASE_MS }).totals.excused
    expect(shareWith()).toBe(0)
    expect(shareWith(fault(26, 26, ['w']))).toBe(1)
    expect(shareWith(fault(26, 600, ['w']))).toBe(2)
    expect(shareWith(fault(26, 600, null))).toBe(3)
    expect(shareWith(fault(26, 600, []))).toBe(0)
  })

  test('every earlier run needs an explanation of its own', () => {
    const third = run(3_000, a, { worker: 'z' })
    expect(anomaliesOf(subscribed(), twice, third, fault(26, 26, ['w']))).toEqual({ duplicate: 1 })
    expect(anomaliesOf(subscribed(), twice, third, fault(26, 26, ['w']), fault(1_501, 1_501, ['x']))).toEqual(
      {},
    )
  })
})

describe('overlaps', () => {
  const solo = subscribed({ oneAtATime: true })
  const [p, q] = [event('p', 'one'), event('q', 'two')]
  const lines = published(10, [p, q])

  test('two at once where there should be one at a time are a failure, whatever their keys', () => {
    expect(anomaliesOf(solo, lines, run(20, p, { until: 40 }), run(30, q, { worker: 'x' }))).toEqual({
      overlap: 1,
    })
    expect(anomaliesOf(ordered, lines, run(20, p, { until: 40 }), run(30, q, { worker: 'x' }))).toEqual({})
  })

  test('a paused worker explains it; a dead one runs nothing any more', () => {
    const runs = [...run(20, p, { until: 1_900 }), ...run(1_500, p, { worker: 'x' }), ...run(1_600, q)]
    const verdict = judge([solo, ...lines, ...runs, fault(21, 1_800, ['w'], 'stop')], { leaseMs: LEASE_MS })
    expect(verdict.ok).toBe(true)
    expect(verdict.explained.overlaps).toHaveLength(2)
    const died: Entry = { kind: 'died', at: 25, worker: 'w' }
    const heirs = [...run(1_500, p, { worker: 'x' }), ...run(1_600, q, { worker: 'x' })]
    const after = judge(
      [solo, ...lines, ...run(20, p, { until: null }), ...heirs, died, fault(25, 25, ['w'])],
      {
        leaseMs: LEASE_MS,
      },
    )
    expect(after).toMatchObject({ ok: true, explained: { overlaps: [] } })
  })
})
