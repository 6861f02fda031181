import { describe, expect, test } from 'vitest'
import { definitionOf, untilActive } from '../store/contract/helpers.ts'
import { column, one, refusal } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, publish, replaceFunction } from './support.ts'

/** Forgets everything while a registration from the beginning is not committed yet. Returns what the newcomer gets. */
async function forgetWhileRegistering(h: Hazard): Promise<readonly string[]> {
  const { store, pool } = h.worker('registrar')
  await publish(h.db.pool, ['a', 'b'])
  const hold = pool.holdBefore(/^commit/)
  const registering = store.register(definitionOf({ startFrom: 'beginning' }))
  await hold.reached
  const retention = await h.connect('retention')
  const forgetting = one(retention, 'select outbox_forget(array(select event_id from outbox_event))')
  await Promise.race([forgetting, h.untilBlocked('retention')])
  hold.go()
  await Promise.all([registering, forgetting])
  await untilActive(store)
  return column(
    h.db.pool,
    'select e.aggregate_id from outbox_delivery d join outbox_event e using (event_id) order by d.id',
  )
}

describe('events forgotten while a subscription registers', () => {
  test('are not: it gets all of them', async () => {
    await using h = await hazard()
    expect(await forgetWhileRegistering(h)).toEqual(['a', 'b'])
  })

  test('are lost to it if retention does not wait for the registration', async () => {
    await using h = await hazard()
    await replaceFunction(h, 'outbox_forget', (definition) =>
      definition.replace(/perform \S+outbox_lock_registry\(\);/, ''),
    )
    expect(await forgetWhileRegistering(h)).toEqual([])
  })

  test('is refused where the transaction would not see the newcomer', async () => {
    await using h = await hazard()
    const client = await h.connect('retention')
    await client.query('begin isolation level repeatable read')
    expect(await refusal(client.query(`select outbox_forget('{}')`))).toBe('25001')
  })
})
