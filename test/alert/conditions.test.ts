import { describe, expect, test } from 'vitest'
import { resolveAlertOptions } from '../../src/alert/alert-options.ts'
import { findConditions, mostToCount, type Seen } from '../../src/alert/conditions.ts'
import type { OpenLetters, SubscriptionFigures } from '../../src/store/alert-store.ts'
import { figuresOf, recordingSink } from './support.ts'

const { rules } = resolveAlertOptions({}, recordingSink())
const letters = (count: number): OpenLetters => ({ count, byType: [], oldest: null })
const seen = (changes: Partial<SubscriptionFigures>, more: Partial<Seen> = {}): Seen => ({
  letters: letters(0),
  figures: { subscriptions: [figuresOf(changes)], vanished: [], position: 0 },
  eventsPerSecond: null,
  ...more,
})
const keysOf = (what: Seen): readonly string[] => findConditions(rules, what).map(({ key }) => key)

describe("the seeds' defaults", () => {
  test('nothing holds where nothing is', () => {
    expect(keysOf(seen({}))).toEqual([])
  })

  test.each([
    ['D7 10 or more unresolved', { letters: letters(9) }, { letters: letters(10) }, 'unresolved'],
    [
      'L13 more than 1,000 events per second',
      { eventsPerSecond: 1_000 },
      { eventsPerSecond: 1_000.5 },
      'eventRate',
    ],
  ])('%s', (_, below, above, key) => {
    expect(keysOf(seen({}, below))).toEqual([])
    expect(keysOf(seen({}, above))).toEqual([key])
  })

  test.each([
    ['L7 100 or more pending for over 5 minutes', { stuck: 99 }, { stuck: 100 }, 'stuckPending:mailer'],
    [
      'U9 more than 1,000 unpublished',
      { pending: 900, processing: 100 },
      { pending: 901, processing: 100 },
      'unpublished:mailer',
    ],
    [
      'U9 the oldest older than 1 minute',
      { oldestPendingSeconds: 60 },
      { oldestPendingSeconds: 60.001 },
      'oldestPending:mailer',
    ],
    ['U9 more than 10 dead', { dead: 10 }, { dead: 11 }, 'dead:mailer'],
    ['U9 more than 1 retry on average', { meanRetries: 1 }, { meanRetries: 1.01 }, 'meanRetries:mailer'],
  ])('%s', (_, below, above, key) => {
    expect(keysOf(seen(below))).toEqual([])
    expect(keysOf(seen(above))).toEqual([key])
  })

  test('a log that has lost something is told of while the table serves, and for ten minutes after', () => {
    const log = (gapSeconds: number | null) => ({
      log: { silentSeconds: 0, gap: 'slot-missing', gapSeconds },
    })
    expect(keysOf(seen(log(null)))).toEqual([])
    expect(keysOf(seen(log(0)))).toEqual(['streamGap:mailer'])
    expect(keysOf(seen(log(600)))).toEqual(['streamGap:mailer'])
    expect(keysOf(seen(log(600.1)))).toEqual([])
  })

  test('a log that nobody reads is told of, whether anything waits there or not', () => {
    const log = { silentSeconds: 61, gap: null, gapSeconds: null }
    expect(keysOf(seen({ workers: 0, log }))).toEqual(['workerMissing:mailer'])
    expect(keysOf(seen({ workers: 1, log }))).toEqual([])
    expect(keysOf(seen({ workers: 0, log: { ...log, silentSeconds: 59 } }))).toEqual([])
  })

  test('a subscription that nobody serves is told of once something has waited', () => {
    expect(keysOf(seen({ workers: 0 }))).toEqual([])
    expect(keysOf(seen({ workers: 0, oldestPendingSeconds: 61 }))).toEqual([
      'oldestPending:mailer',
      'workerMissing:mailer',
    ])
    expect(keysOf(seen({ workers: 1, oldestPendingSeconds: 61 }))).toEqual(['oldestPending:mailer'])
  })
})

test('each rule is switched off by null, and moved by its option', () => {
  const everything = seen(
    {
      stuck: 500,
      pending: 5_000,
      oldestPendingSeconds: 500,
      dead: 500,
      meanRetries: 5,
      workers: 0,
    },
    { letters: letters(500), eventsPerSecond: 5_000 },
  )
  const off = {
    unresolved: null,
    stuckPending: null,
    unpublished: null,
    oldestPendingMs: null,
    dead: null,
    meanRetries: null,
    eventsPerSecond: null,
    workerMissingMs: null,
  }
  const rulesOf = (options: object) => resolveAlertOptions({ ...off, ...options }, recordingSink()).rules
  expect(findConditions(rulesOf({}), everything)).toEqual([])
  for (const [option, threshold] of Object.entries({
    ...off,
    unresolved: 500,
    stuckPending: 500,
    unpublished: 4_999,
  })) {
    const found = findConditions(rulesOf({ [option]: threshold ?? 1 }), everything)
    expect(found, option).toHaveLength(1)
  }
  expect(findConditions(rulesOf({ unresolved: 501 }), everything)).toEqual([])
})

test('counts go one further than the highest threshold', () => {
  expect(mostToCount(rules)).toBe(1_001)
  expect(mostToCount({ ...rules, dead: 5_000 })).toBe(5_001)
})
