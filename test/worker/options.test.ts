import { describe, expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { InvalidOptionsError } from '../../src/runtime/errors.ts'
import { schedule } from '../../src/settle/backoff.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import { exhaustive, type Subscription, subscription } from '../../src/worker/subscription.ts'
import type { SubscriptionOptions } from '../../src/worker/subscription-options.ts'
import { subscriptionProblems } from '../../src/worker/subscription-problems.ts'
import { events, memoryOutbox } from './memory-outbox.ts'

const { outbox } = memoryOutbox()
const on = { ThingHappened: (): void => {} }

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.problems
    throw error
  }
  return []
}

/** A subscription that nobody has looked at before the worker does. */
function unseen(
  name: string,
  options: SubscriptionOptions<typeof events, unknown>,
): Subscription<typeof events, unknown> {
  return { name, options }
}

function resolved(given: Subscription<typeof events, unknown>) {
  return resolveSubscription(events, given)
}

test.each([
  [['MOVED_ASIDE'], 'MOVED_ASIDE'],
  [['SICK', 'MOVED*'], 'MOVED_ASIDE'],
  [['M*'], 'MOVED_ASIDE'],
  [['MOVED_ASIDE*'], 'MOVED_ASIDE'],
  [['SUBSCRIPTION*', 'MOVED_*'], 'MOVED_ASIDE, SUBSCRIPTION_RETIRED'],
])('a redrive policy of %j is refused: a person decided on %s', (codes, decided) => {
  const redrive = { name: 'p', codes, after: '1m' } as const
  expect(problemsOf(() => subscription('s', { on, redrive }))).toEqual([
    `redrive.codes: ${decided} is what a person decided, which no policy undoes`,
  ])
})

test('a redrive policy may name classes of codes that only look like those a person decided on', () => {
  const redrive = { name: 'p', codes: ['MOVED_BY*', 'SUBSCRIBER*', 'HTTP_5*'], after: '1m' } as const
  expect(problemsOf(() => subscription('s', { on, redrive }))).toEqual([])
})

describe('the options of a worker', () => {
  test('are refused with all problems of all subscriptions at once', () => {
    const problems = problemsOf(() =>
      outbox.worker(
        [
          unseen('first one', { on, concurrency: 0, pollMs: 1.5, maxAttempts: 0 }),
          unseen('second', { on, order: 'aggregate', lanes: 65, batchSize: 0 }),
          unseen('second', { on, onDead: 'block', streams: [] }),
        ],
        { leaseMs: 1, unmatched: 'maybe' as 'report' },
      ),
    )
    for (const part of [
      'leaseMs',
      'unmatched',
      'listed more than once',
      '"first one": the name',
      '"first one": concurrency',
      '"first one": pollMs',
      '"first one": maxAttempts',
      '"second": lanes',
      '"second": batchSize',
      '"second": onDead is for ordered',
      '"second": streams',
    ]) {
      expect(problems.filter((problem) => problem.includes(part))).toHaveLength(1)
    }
  })

  test('that no database can store are refused before anything is sent', () => {
    const problems = problemsOf(() =>
      outbox.worker(
        [
          unseen('late', { on, startFrom: new Date(8.64e15) }),
          unseen('early', { on, startFrom: new Date(-1e14) }),
          unseen('odd', { on: { '*': async () => {} }, streams: ['a\0b'] }),
        ],
        { workerId: 'w\0' },
      ),
    )
    expect(problems).toEqual([
      expect.stringMatching(/^workerId contains a NUL character/),
      expect.stringContaining('"late": startFrom must be a Date of the years 1 to 9999'),
      expect.stringContaining('"early": startFrom must be a Date of the years 1 to 9999'),
      expect.stringContaining('"odd": streams: a stream name contains a NUL character'),
    ])
    expect(
      problemsOf(() => outbox.worker([subscription('s', { on })], { workerId: 'w'.repeat(201) })),
    ).toEqual(['workerId must be at most 200 characters long, but is 201'])
  })

  test('need at least one subscription', () => {
    expect(problemsOf(() => outbox.worker([]))).toEqual(['there must be a list of at least one subscription'])
  })

  test('need a handler for every event of the streams that are taken', () => {
    const problems = problemsOf(() => outbox.worker([subscription('s', { streams: ['te*'], on })]))
    expect(problems).toEqual([
      'subscription "s": streams bring events without a handler: OtherHappened. Add them, or \'*\' for all others',
    ])
    expect(
      problemsOf(() =>
        outbox.worker([subscription('s', { streams: ['te*'], on: { ...on, '*': () => {} } })]),
      ),
    ).toEqual([])
  })

  test('refuse a handler for an event that does not exist, at compile time and at run time', () => {
    const problems = problemsOf(() =>
      // @ts-expect-error: there is no such event
      outbox.worker([subscription('s', { on: { ThingHapened: () => {} } })]),
    )
    expect(problems).toEqual([
      'subscription "s": there is a handler for "ThingHapened", which is not in the catalogue; did you mean "ThingHappened"?',
    ])
  })

  test('say which options contradict each other', () => {
    const problems = problemsOf(() =>
      outbox.worker([
        unseen('s', { on, oneAtATime: true, order: 'none', lanes: 4, concurrency: 5 }),
        unseen('t', { on, order: 'total', lanes: 2 }),
      ]),
    )
    expect(problems).toHaveLength(4)
  })
})

describe('a subscription', () => {
  test('is refused where it is declared, with all its problems at once', () => {
    const wrong = { on, concurrency: 0, lanes: 4 }
    const problems = [
      'the name must be 1 to 100 letters, digits, dots, dashes or underscores, but is "first one"',
      'concurrency must be a whole number from 1 to 10000, but is 0',
      "lanes are for ordered subscriptions: add order 'aggregate'",
    ]
    expect(problemsOf(() => subscription('first one', wrong))).toEqual(problems)
    expect(problemsOf(() => outbox.subscription('first one', wrong))).toEqual(problems)
    expect(() => subscription('s', wrong)).toThrow('Invalid options for subscription "s":')
    expect(problemsOf(() => subscription('s', undefined as never))).toEqual([
      'the options must be an object, but is undefined',
    ])
  })

  test('of an outbox is refused at once for a handler of an event that does not exist', () => {
    // @ts-expect-error: there is no such event
    expect(problemsOf(() => outbox.subscription('s', { on: { ThingHapened: () => {} } }))).toEqual([
      'there is a handler for "ThingHapened", which is not in the catalogue; did you mean "ThingHappened"?',
    ])
  })

  test('with a handler by the stored type is told the name in code', () => {
    const renamed = defineEvents({
      OrderPlaced: { stream: 's', aggregate: 'order', schema: unchecked(), storedAs: 'ORDER_WAS_PLACED' },
    })
    expect(subscriptionProblems(renamed, 's', { on: { ORDER_WAS_PLACED: () => {} } })).toEqual([
      'there is a handler for "ORDER_WAS_PLACED", which is not in the catalogue: in code it is called "OrderPlaced"',
    ])
  })

  const elsewhere: readonly (readonly [string, string])[] = [
    ['maxRetries', 'use maxAttempts, which counts the first attempt too'],
    ['retries', 'use maxAttempts, which counts the first attempt too'],
    ['backoff', 'use retry'],
    ['handlers', 'use on'],
    ['maxAttemps', 'did you mean "maxAttempts"?'],
    ['timeout', 'did you mean "timeoutMs"?'],
  ]
  test.each(elsewhere)('with the option %s is told: %s', (name, advice) => {
    expect(problemsOf(() => subscription('s', { on, [name]: 3 }))).toEqual([
      `there is no option "${name}"; ${advice}`,
    ])
  })

  test('takes the events it has handlers for, by their stored types', () => {
    expect(resolved(subscription('s', { on })).definition).toMatchObject({
      streams: null,
      eventTypes: ['ThingHappened'],
      orderBy: 'none',
      lanes: 0,
    })
  })

  test("takes everything with '*', and all of its streams where they are given", () => {
    expect(resolved(subscription('s', { on: { '*': () => {} } })).definition).toMatchObject({
      streams: null,
      eventTypes: null,
    })
    expect(resolved(subscription('s', { on, streams: ['test'] })).definition).toMatchObject({
      streams: ['test'],
      eventTypes: null,
    })
  })

  test('has sixteen lanes with order by aggregate, one with total order, and one at a time', () => {
    expect(resolved(subscription('s', { on, order: 'aggregate' })).definition.lanes).toBe(16)
    expect(resolved(subscription('s', { on, order: 'total' })).definition.lanes).toBe(1)
    const one = resolved(subscription('s', { on, oneAtATime: true }))
    expect(one.definition).toMatchObject({ orderBy: 'aggregate', lanes: 1 })
    expect(one.concurrency).toBe(1)
  })

  test('U1 counts attempts, the first included, and waits as scheduled', () => {
    const { retry, definition } = resolved(
      subscription('s', { on, retry: schedule('1m', '5m'), maxAttempts: 10 }),
    )
    expect(definition.maxAttempts).toBe(10)
    expect(retry.backoff.delayMs(7, () => 0)).toBe(300_000)
  })

  test('gives handlers the types of the catalogue', () => {
    outbox.subscription('s', {
      on: {
        ThingHappened: async (event, ctx) => {
          const n: number = event.payload.n
          // @ts-expect-error: not in the payload
          void event.payload.missing
          // @ts-expect-error: there is no such event
          if (n < 0) await ctx.publish({}, 'NoSuchThing', { aggregateId: 1, payload: {} })
        },
      },
    })
    // @ts-expect-error: OtherHappened is missing
    exhaustive<typeof events, unknown>({ ThingHappened: () => {} })
    exhaustive<typeof events, unknown>({ ThingHappened: () => {}, OtherHappened: () => {} })
  })
})
