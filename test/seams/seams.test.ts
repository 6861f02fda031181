import pg from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { PostgresCare } from '../../src/store/postgres/care.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import { PostgresRetentionStore } from '../../src/store/postgres/retention-store.ts'
import { PostgresWorkerStore } from '../../src/store/postgres/worker-store.ts'
import { publishingApart } from './caller-scenes.ts'
import { BESIDE } from './not-here.ts'
import { amendingApart } from './operator-scenes.ts'
import { CLEAN, play } from './play.ts'
import type { Scene } from './scene.ts'
import { scenes } from './scenes.ts'
import { dropSchemas } from './schemas.ts'
import { FAULTS } from './seam-pool.ts'

vi.setConfig({ maxConcurrency: 4 })

afterAll(dropSchemas)

/** So many at once: each has a schema and processes of its own, and the server takes only so many connections. */
const AT_ONCE = 12

/**
 * Every scene twice without a fault: what it passes through both times is where it is broken below. What it passes only where
 * others are in its way would be waited for in vain.
 */
async function playAll() {
  const all: ({ readonly scene: Scene } & Awaited<ReturnType<typeof play>>)[] = []
  for (let first = 0; first < scenes.length; first += AT_ONCE) {
    const some = scenes.slice(first, first + AT_ONCE)
    all.push(...(await Promise.all(some.map(async (scene) => ({ scene, ...(await play(scene)) })))))
  }
  return all
}
const once = await playAll()
const again = await playAll()
const played = once.map(({ scene, seams, verdict, partsAt }, index) => {
  const others = again[index]?.seams ?? []
  const all = [...new Set([...seams, ...others])]
  const always = seams.filter((seam) => others.includes(seam))
  return { scene, all, always, partsAt, verdicts: [verdict, again[index]?.verdict] }
})

const operationOf = (seam: string): string => seam.slice(0, seam.indexOf(':'))
/** A scene may tell the turns of one method apart: `moveAside, part 2`. */
const methodOf = (seam: string): string => operationOf(seam).split(',', 1).join()
/** How often a seam comes again is decided by who is faster. */
const firstTurnOf = (seam: string): string => seam.replace(/ \(\d+\)$/, '')
const isBeside = (seam: string): boolean => Object.hasOwn(BESIDE, methodOf(seam))

const plan = played.flatMap(({ scene, always }) =>
  always
    .filter(
      (seam) => scene.operations.includes(operationOf(seam)) && scene.elsewhere?.includes(seam) !== true,
    )
    .flatMap((seam) => FAULTS.map((fault) => ({ scene, seam, fault }))),
)
const broken = new Set(plan.map(({ seam }) => seam))
/** Every operation of which a statement is broken, the smaller ones within others too. */
const brokenMethods = new Set([
  ...[...broken].map(methodOf),
  ...played.flatMap(({ partsAt }) =>
    [...partsAt].flatMap(([seam, parts]) => (broken.has(seam) ? [...parts] : [])),
  ),
])
/** Its class is nobody's but its own. */
const anyStore = postgresStore({ pool: new pg.Pool() })

describe('a process without a fault', () => {
  test.each(played)('has nothing wrong: $scene.name', ({ verdicts }) => {
    expect(verdicts).toEqual([CLEAN, CLEAN])
  })

  test('passes no seam, even once, that is not broken somewhere below', () => {
    const passed = new Set(played.flatMap(({ all }) => all))
    const brokenOnce = new Set([...broken].map(firstTurnOf))
    expect([...passed].filter((seam) => !brokenOnce.has(firstTurnOf(seam)) && !isBeside(seam))).toEqual([])
  })

  test('passes those that are left to another scene in one that always does', () => {
    const left = scenes.flatMap(({ elsewhere = [] }) => elsewhere)
    expect(left.filter((seam) => !broken.has(seam))).toEqual([])
  })

  test('passes in each scene through every operation that is to be broken there', () => {
    const missed = played.flatMap(({ scene: { name, operations }, all }) =>
      operations
        .filter((operation) => !all.some((seam) => operationOf(seam) === operation))
        .map((operation) => `${name}: ${operation}`),
    )
    expect(missed).toEqual([])
  })

  test.each([
    ['a worker', PostgresWorkerStore.prototype],
    ['an operator', PostgresCare.prototype],
    ['a publisher', Object.getPrototypeOf(anyStore)],
    ['retention', PostgresRetentionStore.prototype],
  ])('passes through every operation %s has', (_, store) => {
    const methods = Object.getOwnPropertyNames(store)
    expect(methods.filter((name) => !brokenMethods.has(name) && !Object.hasOwn(BESIDE, name))).toEqual([])
  })

  test('passes through nothing that is said to be broken nowhere', () => {
    expect([...broken].filter(isBeside)).toEqual([])
  })
})

describe.concurrent.each(scenes)('$name', (scene) => {
  for (const { seam, fault } of plan.filter((each) => each.scene === scene)) {
    test(`${seam}: ${fault}`, async () => {
      const { verdict } = await play(scene, { seam, fault })
      expect(verdict).toEqual(CLEAN)
    })
  }
})

test.each([
  { scene: publishingApart, anomaly: 'lost', count: 3 },
  { scene: amendingApart, anomaly: 'duplicate', count: 1 },
])(
  'what belongs in one transaction and is done in two is caught at the seam between them: $scene.name',
  async ({ scene, anomaly, count }) => {
    const { verdict, seams } = await play(scene)
    expect(verdict).toEqual(CLEAN)
    const between = seams.find((seam) => /^publish: (?:.* \+ )?commit\b/.test(seam)) ?? 'no commit'
    const { verdict: apart } = await play(scene, { seam: between, fault: 'crash-after' })
    expect(apart).toMatchObject({ anomalies: { [anomaly]: count } })
  },
)
