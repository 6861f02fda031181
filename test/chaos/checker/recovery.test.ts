import { describe, expect, test } from 'vitest'
import type { Entry } from './entry.ts'
import { judge, type Verdict } from './judge.ts'
import { event, fault, LEASE_MS, published, run, subscribed } from './lines.ts'

const a = event('a')

describe('recovery', () => {
  const recoveredAfter = (...lines: readonly Entry[]): Verdict =>
    judge([subscribed(), ...lines], { leaseMs: LEASE_MS, recoveryBarMs: LEASE_MS })

  test('counts from the fault to the good end of what was committed before', () => {
    const lines = [...published(10, [a]), fault(100, 100, ['w']), ...run(595, a)]
    expect(recoveredAfter(...lines)).toMatchObject({
      ok: true,
      recoveries: [{ name: 'kill', ms: 500, aloneMs: 500, sinceMs: 500 }],
    })
  })

  test('from the end of an outage, and from the beginning of what hits one worker only', () => {
    const late = [...published(10, [a]), ...run(2_495, a)]
    expect(recoveredAfter(...late, fault(100, 2_000, null, 'restart')).recoveries).toMatchObject([
      { ms: 500 },
    ])
    expect(recoveredAfter(...late, fault(100, 4_000, ['w'], 'stop'))).toMatchObject({
      ok: false,
      tooSlow: [{ name: 'stop', ms: 2_400 }],
    })
  })

  test('from the commit of what was published while the fault can still be felt', () => {
    const lines = [...published(1_000, [a]), fault(100, 100, ['w']), ...run(1_097, a)]
    expect(recoveredAfter(...lines).recoveries).toMatchObject([{ ms: 100, aloneMs: 100, sinceMs: 100 }])
  })

  test('a wait belongs to the fault that it began with, whatever else is broken meanwhile', () => {
    const lines = [...published(10, [a]), fault(100, 100, ['w']), fault(900, 900, ['x']), ...run(1_595, a)]
    expect(recoveredAfter(...lines)).toMatchObject({
      ok: true,
      recoveries: [
        { fault: 'kill@100', ms: 1_500, aloneMs: 0, sinceMs: 0 },
        { fault: 'kill@900', ms: 0, aloneMs: 0, sinceMs: 700 },
      ],
    })
  })

  test('what harms no worker excuses no wait', () => {
    const cuts = [2, 4, 6, 8].map((second) => fault(second * 1_000, second * 1_000, [], 'cutPublisher'))
    const lines = [...published(10, [a]), fault(100, 100, ['w']), ...cuts, ...run(9_095, a)]
    expect(recoveredAfter(...lines)).toMatchObject({
      ok: false,
      tooSlow: [{ fault: 'kill@100', ms: 9_000, aloneMs: 9_000, sinceMs: 9_000 }],
    })
    expect(recoveredAfter(...published(10, [a]), ...cuts, ...run(9_095, a))).toMatchObject({
      ok: false,
      tooSlow: [{ name: 'cutPublisher', ms: 7_100 }],
    })
  })
})
