import { afterAll, describe, expect, test, vi } from 'vitest'
import { PostgresWorkerStore } from '../../src/store/postgres/worker-store.ts'
import { publishingApart } from './caller-scenes.ts'
import { CLEAN, play } from './play.ts'
import { scenes } from './scenes.ts'
import { dropSchemas } from './schemas.ts'
import { FAULTS } from './seam-pool.ts'

vi.setConfig({ maxConcurrency: 6 })

afterAll(dropSchemas)

/**
 * Every scene twice without a fault: what it passes through both times is where it is broken below. What it passes only where
 * others are in its way would be waited for in vain.
 */
const playAll = () => Promise.all(scenes.map(async (scene) => ({ scene, ...(await play(scene)) })))
const once = await playAll()
const again = await playAll()
const played = once.map(({ scene, seams, verdict }, index) => ({
  scene,
  seams: seams.filter((seam) => again[index]?.seams.includes(seam) === true),
  verdicts: [verdict, again[index]?.verdict],
}))

const operationOf = (seam: string): string => seam.slice(0, seam.indexOf(':'))
const plan = played.flatMap(({ scene, seams }) =>
  seams
    .filter(
      (seam) => scene.operations.includes(operationOf(seam)) && scene.elsewhere?.includes(seam) !== true,
    )
    .flatMap((seam) => FAULTS.map((fault) => ({ scene, seam, fault }))),
)

// Not a step on the way of an event. `openTransaction` only reads, for a message, and only where joining takes its time.
const BESIDE = new Set(['constructor', 'close', 'listen', 'openTransaction', 'setPaused', 'subscriptions'])

describe('a process without a fault', () => {
  test.each(played)('has nothing wrong: $scene.name', ({ verdicts }) => {
    expect(verdicts).toEqual([CLEAN, CLEAN])
  })

  test('passes no seam that is not broken somewhere below', () => {
    const broken = new Set(plan.map(({ seam }) => seam))
    const passed = new Set(played.flatMap(({ seams }) => seams))
    expect([...passed].filter((seam) => !broken.has(seam) && !BESIDE.has(operationOf(seam)))).toEqual([])
  })

  test('passes through every operation a worker has', () => {
    const methods = Object.getOwnPropertyNames(PostgresWorkerStore.prototype)
    const passed = new Set(plan.map(({ seam }) => operationOf(seam)))
    expect(methods.filter((name) => !passed.has(name) && !BESIDE.has(name))).toEqual([])
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

test('what belongs in one transaction and is done in two is caught at the seam between them', async () => {
  const { verdict, seams } = await play(publishingApart)
  expect(verdict).toEqual(CLEAN)
  const between = seams.find((seam) => seam === 'publish: commit') ?? 'no commit'
  const broken = await play(publishingApart, { seam: between, fault: 'crash-after' })
  expect(broken.verdict).toMatchObject({ anomalies: { lost: 3 } })
})
