import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { claimLanes, takeLanes, untilActive } from '../store/contract/helpers.ts'
import { type Hazard, hazard, type SteppedWorker } from './support.ts'
import { ordered, publishInTurn, publishOpen, type WideningScene, wideningScene } from './widening-scene.ts'

const rowOf = async (h: Hazard, { sub }: WideningScene): Promise<unknown> => {
  const { rows } = await h.db.pool.query(
    'select state, joined_snapshot::text, served_to from outbox_subscription where id = $1',
    [sub.id],
  )
  return rows[0]
}

describe('a widening whose process is gone as soon as it has committed', () => {
  /** Between its beginning and its commit an event of the new type is published, and a later one of its key served. */
  async function widenAndVanish(
    h: Hazard,
    { serve }: WideningScene,
    registrar: SteppedWorker = h.worker('registrar'),
  ): Promise<{ readonly served: readonly string[]; readonly comeBack: () => Promise<void> }> {
    const commit = registrar.pool.holdBefore(/^commit/)
    const widening = registrar.store.register(ordered('Old', 'New'))
    await commit.reached
    await publishInTurn(h, 'a', 'New', 'Old')
    const served = await serve()
    const vanished = registrar.pool.holdBefore(/set joined_snapshot = pg_current_snapshot/)
    commit.go()
    await vanished.reached
    return {
      served,
      comeBack: async () => {
        vanished.go()
        await widening
      },
    }
  }

  test('brings no event from before that after later ones of its key', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const { served, comeBack } = await widenAndVanish(h, scene)
    await scene.endOldTransaction()
    await untilActive(scene.store)
    const servedThen = await scene.serve()
    await comeBack()
    expect([...served, ...servedThen]).toEqual(['Old a'])
  })

  test('brings one if its snapshot was taken in its own transaction', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const registrar = h.worker('registrar')
    registrar.pool.rewrite = (text) =>
      text.replace(/when s.lanes = 0 .* then pg_current_snapshot\(\)/, 'else pg_current_snapshot()')
    const { served, comeBack } = await widenAndVanish(h, scene, registrar)
    await scene.endOldTransaction()
    await untilActive(scene.store)
    const servedThen = await scene.serve()
    await comeBack()
    expect([...served, ...servedThen]).toEqual(['Old a', 'New a'])
  })

  test('is served on by whoever lets it join, and a process that was only slow changes nothing', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const { served, comeBack } = await widenAndVanish(h, scene)
    const servedBefore = await scene.serve()
    const joining = await scene.store.advanceJoining()
    await publishInTurn(h, 'b', 'New', 'Old')
    await scene.store.advanceJoining()
    const row = await rowOf(h, scene)
    await comeBack()

    expect(await rowOf(h, scene)).toEqual(row)
    expect(joining).toEqual(['sub'])
    expect([...served, ...servedBefore, ...(await scene.serve())]).toEqual(['Old a', 'New b', 'Old b'])
  })

  test('is finished by whoever registers next, so that what is being published then is not left out', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const commit = await publishOpen(h, 'b', 'New')
    const { comeBack } = await widenAndVanish(h, scene)
    await scene.store.register(ordered('Old', 'New'))
    await commit()
    await scene.endOldTransaction()
    await untilActive(scene.store)
    const served = await scene.serve()
    await comeBack()
    expect(served).toEqual(['New b'])
  })

  test('may be widened again: both are finished together', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const { served, comeBack } = await widenAndVanish(h, scene)
    await publishInTurn(h, 'a', 'Newer', 'New')
    await scene.store.register(ordered('Old', 'Newer'))
    await publishInTurn(h, 'a', 'Newer')
    await scene.store.advanceJoining()
    const servedThen = await scene.serve()
    await comeBack()
    expect([...served, ...servedThen]).toEqual(['Old a', 'New a', 'Newer a'])
  })

  test('may be retired: nobody serves it on, and its name can be given again', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    const { comeBack } = await widenAndVanish(h, scene)
    const { pool, schema } = h.db
    const request = { operator: 'kim', note: null, discard: true, force: true }
    await postgresStore({ pool, schema }).retireSubscription('sub', request)
    const joining = await scene.store.advanceJoining()
    await comeBack()
    expect(joining).toEqual([])
    expect(await rowOf(h, scene)).toEqual({ state: 'retired', joined_snapshot: null, served_to: null })

    await scene.endOldTransaction()
    const again = await scene.store.register(ordered('Old'))
    await untilActive(scene.store)
    await publishInTurn(h, 'b', 'Old')
    const lanes = await takeLanes(scene.store, again, 'w')
    expect(await claimLanes(scene.store, again, 'w', lanes)).toHaveLength(1)
  })
})
