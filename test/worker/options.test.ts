import { describe, expect, test } from 'vitest'
import { InvalidOptionsError } from '../../src/runtime/errors.ts'
import { schedule } from '../../src/settle/backoff.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import { exhaustive, type Subscription, subscription } from '../../src/worker/subscription.ts'
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

function resolved(given: Subscription<typeof events, unknown>) {
  return resolveSubscription(events, given)
}

describe('the options of a worker', () => {
  test('are refused with all problems of all subscriptions at once', () => {
    const problems = problemsOf(() =>
      outbox.worker(
        [
          subscription('first one', { on, concurrency: 0, pollMs: 1.5, maxAttempts: 0 }),
          subscription('second', { on, order: 'aggregate', lanes: 65, batchSize: 0 }),
          subscription('second', { on, onDead: 'block', streams: [] }),
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

  test('need at least one subscription', () => {
    expect(problemsOf(() => outbox.worker([]))).toEqual(['there must be at least one subscription'])
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
      outbox.worker([outbox.subscription('s', { on: { ThingHapened: () => {} } })]),
    )
    expect(problems).toEqual([
      'subscription "s": there is a handler for "ThingHapened", which is not in the catalogue',
    ])
  })

  test('say which options contradict each other', () => {
    const problems = problemsOf(() =>
      outbox.worker([
        subscription('s', { on, oneAtATime: true, order: 'none', lanes: 4, concurrency: 5 }),
        subscription('t', { on, order: 'total', lanes: 2 }),
      ]),
    )
    expect(problems).toHaveLength(4)
  })
})

describe('a subscription', () => {
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
