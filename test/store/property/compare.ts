import assert from 'node:assert/strict'
import type { Model, ModelDelivery } from './model.ts'
import type { Real, RealDelivery } from './real.ts'

/** Asserts that the tables say what the model says, row by row. */
export async function compare(model: Model, real: Real): Promise<void> {
  const rows = await real.deliveries()
  const unseen = new Set(model.deliveries)
  for (const row of rows) {
    const expected = find(model, row)
    assert.ok(expected, `a delivery that should not be there: ${JSON.stringify(row)}`)
    assert.ok(unseen.delete(expected), `a delivery that is there twice: ${JSON.stringify(row)}`)
    expected.event.position = row.position
    expected.lane = row.lane
    assert.deepEqual(visible(row), visibleOf(expected), `delivery ${row.position} of ${row.subscription}`)
  }
  assert.deepEqual([...unseen].map(visibleOf), [], 'deliveries that should be there')
}

/** Takes over which rows a claim has parked, and asserts that each had to wait. Returns how many were fresh and due. */
export async function syncParked(
  model: Model,
  real: Real,
): Promise<{ readonly fresh: number; readonly due: number }> {
  const parked = { fresh: 0, due: 0 }
  for (const row of await real.deliveries()) {
    const known = find(model, row)
    if (known === undefined || row.wait !== 'parked' || known.wait === 'parked') continue
    assert.ok(model.isBehindHeld(known), `${row.position} was parked behind nothing`)
    assert.ok(known.wait !== 'later' && !known.suspect, `${row.position} waited for something else`)
    parked[known.held ? 'due' : 'fresh'] += 1
    Object.assign(known, { wait: 'parked', held: true })
  }
  return parked
}

function find(model: Model, row: RealDelivery): ModelDelivery | undefined {
  return model.deliveries.find(
    ({ subscription, event }) => subscription.name === row.subscription && event.eventId === row.eventId,
  )
}

function visible({ status, attempts, suspect, held, wait, token, letters }: RealDelivery) {
  return { status, attempts, suspect, held, wait, token, letters }
}

function visibleOf({ status, attempts, suspect, held, wait, token, letter }: ModelDelivery) {
  return { status, attempts, suspect, held, wait, token, letters: letter ? 1 : 0 }
}
