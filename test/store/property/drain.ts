import assert from 'node:assert/strict'
import { eventually } from '../../support/program.ts'
import { Decide, Lapse, LetTimePass, Recover, Settle } from './ending.ts'
import type { Model } from './model.ts'
import { Advance, EndPublish, Pause } from './publishing.ts'
import type { Real } from './real.ts'
import type { Step } from './step.ts'
import { Claim, ClaimLanes, ClaimSuspects, TakeLanes } from './taking.ts'

const DONE = { kind: 'done' } as const
const LIMIT = 8
const ROUNDS = 200

/** Brings everything to its end as one healthy worker would, with an operator who resolves what is dead. */
export async function drain(model: Model, real: Real): Promise<void> {
  const run = async (step: Step): Promise<void> => {
    if (step.check(model)) await step.run(model, real)
  }
  await run(new EndPublish('commit'))
  for (const { ordered, paused } of model.subscriptions) if (paused) await run(new Pause(ordered))
  // Other tests on this server may have transactions open, which joining waits for.
  await eventually('nothing joins', async () => {
    await run(new Advance())
    return model.subscriptions.every(({ active }) => active)
  })
  await run(new Lapse(0))
  await run(new Lapse(1))
  await run(new Recover())
  for (let round = 0; isUnfinished(model); round += 1) {
    assert.ok(round < ROUNDS, `stranded: ${describe(model)}`)
    await run(new LetTimePass())
    while (model.deliveries.some(({ letter }) => letter)) await run(new Decide('resolve', 0))
    await run(new TakeLanes(0))
    for (const ordered of [false, true]) await run(new ClaimSuspects(0, ordered, 1))
    await run(new Claim(0, LIMIT))
    await run(new ClaimLanes(0, LIMIT))
    while (model.worker(0).hand.length > 0) await run(new Settle(0, LIMIT, DONE, true))
  }
}

function isUnfinished(model: Model): boolean {
  return model.deliveries.some(({ status }) => status === 'PENDING' || status === 'PROCESSING')
}

function describe(model: Model): string {
  const rows = model.deliveries.filter(({ status }) => status === 'PENDING' || status === 'PROCESSING')
  return JSON.stringify(
    rows.map(({ event, status, wait, suspect }) => [event.position, status, wait, suspect]),
  )
}
