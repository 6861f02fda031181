import assert from 'node:assert/strict'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Settlement } from '../../../src/delivery/delivery.ts'
import { createOutboxDatabase, type OutboxDatabase } from '../postgres/fixtures.ts'
import { compare } from './compare.ts'
import { drain } from './drain.ts'
import { Decide, Lapse, LetTimePass, Recover, Settle } from './ending.ts'
import { Model, takes } from './model.ts'
import { Advance, EndPublish, Pause, Publish, Register } from './publishing.ts'
import { Real } from './real.ts'
import type { Step } from './step.ts'
import { Beat, Claim, ClaimLanes, ClaimSuspects, TakeLanes } from './taking.ts'

// The same runs every time; another seed or more runs by hand: PROPERTY_SEED=1 PROPERTY_RUNS=1000 npx vitest run …
const SEED = Number(process.env['PROPERTY_SEED'] ?? 20_261_116)
const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 80)

const failure = { code: 'BOOM', message: 'it failed' }
const worker = fc.nat({ max: 1 })
const limit = fc.integer({ min: 1, max: 6 })
const keys = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
const end = fc.constantFrom('commit' as const, 'rollback' as const)
const settlement: fc.Arbitrary<Settlement> = fc.constantFrom<Settlement[]>(
  { kind: 'done' },
  { kind: 'done' },
  { kind: 'retry', delayMs: 0, failure },
  { kind: 'retry', delayMs: 3_600_000, failure },
  { kind: 'dead', failure },
  { kind: 'release', delayMs: 0 },
  { kind: 'park' },
)
const shape = fc.record({
  ordered: fc.boolean(),
  onDead: fc.constantFrom('block' as const, 'continue' as const),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  fromBeginning: fc.boolean(),
})

const publishes = fc
  .tuple(
    keys,
    fc.constantFrom('commit' as const, 'commit' as const, 'rollback' as const, 'leave open' as const),
  )
  .map(([which, how]) => new Publish(which, how))

const settles = fc
  .tuple(worker, fc.integer({ min: 1, max: 3 }), settlement, fc.boolean())
  .map(([who, count, how, unparks]) => new Settle(who, count, how, unparks))
const claims = fc.tuple(worker, limit).map(([who, count]) => new Claim(who, count))
const laneClaims = fc.tuple(worker, limit).map(([who, count]) => new ClaimLanes(who, count))
const decides = fc
  .tuple(fc.constantFrom('retry' as const, 'resolve' as const), fc.nat({ max: 5 }))
  .map(([act, index]) => new Decide(act, index))

const often = <Item>(times: number, item: Item): Item[] => Array.from({ length: times }, () => item)

const steps: fc.Arbitrary<Step>[] = [
  ...often(2, publishes),
  ...often(2, claims),
  ...often(3, laneClaims),
  ...often(6, settles),
  ...often(2, decides),
  end.map((how) => new EndPublish(how)),
  fc.tuple(worker, fc.boolean(), limit).map(([who, ordered, most]) => new ClaimSuspects(who, ordered, most)),
  worker.map((who) => new TakeLanes(who)),
  worker.map((who) => new Beat(who)),
  worker.map((who) => new Lapse(who)),
  shape.map((which) => new Register(which)),
  fc.constant(new Advance()),
  fc.constant(new Recover()),
  fc.constant(new LetTimePass()),
  fc.boolean().map((ordered) => new Pause(ordered)),
]

/** Most runs begin with both kinds of subscription and something to do, some with nothing. */
const beginnings: fc.Arbitrary<readonly Step[]> = fc.oneof(
  { weight: 1, arbitrary: fc.constant([]) },
  {
    weight: 7,
    arbitrary: fc
      .tuple(shape, shape, keys, limit)
      .map(([one, two, which, count]) => [
        new Register({ ...one, ordered: false }),
        new Register({ ...two, ordered: true }),
        new Advance(),
        new TakeLanes(0),
        new Publish([...which, ...which], 'commit'),
        new Claim(1, count),
        new ClaimLanes(0, count),
      ]),
  },
)

describe('everything that can happen to deliveries, in any order', () => {
  let db: OutboxDatabase

  beforeAll(async () => {
    db = await createOutboxDatabase()
  })
  afterAll(async () => {
    await db.drop()
  })

  test(`leaves the tables as the model says and loses nothing (seed ${SEED}, ${RUNS} runs)`, async () => {
    let happened = 0
    const property = fc.asyncProperty(
      beginnings,
      fc.commands<Model, Real, false>(steps, { maxCommands: 50, size: 'max' }),
      async (beginning, commands) => {
        const [model, real] = [new Model(), new Real(db)]
        try {
          for (const step of beginning) if (step.check(model)) await step.run(model, real)
          await fc.asyncModelRun(() => ({ model, real }), commands)
          await drain(model, real)
          await compare(model, real)
          assertComplete(model)
          happened += model.deliveries.length
        } finally {
          await real.close()
        }
      },
    )
    await fc.assert(property, { seed: SEED, numRuns: RUNS })
    expect(happened).toBeGreaterThan(RUNS)
  })
})

/** Every committed event is DONE or DEAD, once for each subscription that takes it. */
function assertComplete(model: Model): void {
  for (const subscription of model.subscriptions) {
    const ended = model.of(subscription).map(({ event, status }) => `${event.eventId} ${status}`)
    const expected = model.events.filter((event) => takes(subscription, event))
    assert.equal(ended.length, expected.length)
    assert.deepEqual(
      ended.filter((text) => !/DONE|DEAD/.test(text)),
      [],
    )
  }
}
