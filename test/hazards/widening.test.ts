import { describe, expect, test } from 'vitest'
import { untilActive } from '../store/contract/helpers.ts'
import { type Hazard, hazard } from './support.ts'
import { ordered, publishInTurn, publishOpen, type WideningScene, wideningScene } from './widening-scene.ts'

/** The form that asks only up to which position it is served, and not what had ended by then. */
const servedToPosition = (text: string): string =>
  text.replace('case when (select swept from open) is null', 'case when true')

describe('an ordered subscription that is widened while an older transaction is open', () => {
  test('is served on: what it took before, and what it takes now', async () => {
    await using h = await hazard()
    const { store, serve, endOldTransaction } = await wideningScene(h)
    await publishInTurn(h, 'a', 'Old')
    await store.register(ordered('Old', 'New'))

    expect(await serve()).toEqual(['Old a'])
    await publishInTurn(h, 'b', 'Old', 'New')
    expect(await store.advanceJoining()).toEqual(['sub'])
    expect(await serve()).toEqual(['Old b', 'New b'])

    await endOldTransaction()
    await untilActive(store)
    await publishInTurn(h, 'c', 'New')
    expect(await serve()).toEqual(['New c'])
  })

  test('gets events that were published in turn in that order, also those its trigger missed', async () => {
    await using h = await hazard()
    const { store, serve } = await wideningScene(h)
    const commit = await publishOpen(h, 'a', 'New')
    await store.register(ordered('Old', 'New'))
    await commit()
    await publishInTurn(h, 'a', 'Old')

    expect(await serve()).toEqual([])
    await store.advanceJoining()
    expect(await serve()).toEqual(['New a', 'Old a'])
  })

  test('gets the events of one transaction in their order, also those its trigger missed', async () => {
    await using h = await hazard()
    const { store, serve } = await wideningScene(h)
    const commit = await publishOpen(h, 'a', 'New', 'Old')
    await store.register(ordered('Old', 'New'))
    await commit()

    expect(await serve()).toEqual([])
    await store.advanceJoining()
    expect(await serve()).toEqual(['New a', 'Old a'])
  })

  test('gets them in another order if it is served up to a position, whatever had ended by then', async () => {
    await using h = await hazard()
    const { worker, store, serve } = await wideningScene(h)
    worker.pool.rewrite = servedToPosition
    const commit = await publishOpen(h, 'a', 'New', 'Old')
    await store.register(ordered('Old', 'New'))
    await commit()

    expect(await serve()).toEqual(['Old a'])
    await store.advanceJoining()
    expect(await serve()).toEqual(['New a'])
  })

  test('is not served with what ended after the sweep, even if the sweep commits later', async () => {
    await using h = await hazard()
    const { worker, store, serve } = await wideningScene(h)
    const commit = await publishOpen(h, 'a', 'New')
    await store.register(ordered('Old', 'New'))
    const sweep = worker.pool.holdBefore(/pg_snapshot_xip/)
    const advanced = store.advanceJoining()
    await sweep.reached
    const sweepCommits = worker.pool.holdBefore(/^commit/)
    sweep.go()
    await sweepCommits.reached
    await commit()
    await publishInTurn(h, 'a', 'Old')
    sweepCommits.go()
    await advanced

    expect(await serve()).toEqual([])
    await store.advanceJoining()
    expect(await serve()).toEqual(['New a', 'Old a'])
  })
})

describe('an ordered subscription that is widened again while it is served on', () => {
  /** Between the two an event of the newest type is published, and a later one of its key served. */
  async function widenTwice(h: Hazard, scene: WideningScene): Promise<readonly string[]> {
    const { store, serve, endOldTransaction } = scene
    await store.register(ordered('Old', 'New'))
    await publishInTurn(h, 'a', 'Newer', 'Old')
    await store.advanceJoining()
    const served = await serve()
    await store.register(ordered('Old', 'New', 'Newer'))
    await endOldTransaction()
    await untilActive(store)
    return [...served, ...(await serve())]
  }

  test('does not get events from before that after later ones of their key', async () => {
    await using h = await hazard()
    expect(await widenTwice(h, await wideningScene(h))).toEqual(['Old a'])
  })

  test('gets them if the snapshot of the first widening does not move on with what is served', async () => {
    await using h = await hazard()
    const scene = await wideningScene(h)
    scene.worker.pool.rewrite = (text) =>
      servedToPosition(text).replace(/(\bt\s+set) joined_snapshot = pg_current_snapshot\(\),/, '$1')
    expect(await widenTwice(h, scene)).toEqual(['Old a', 'Newer a'])
  })

  test('is served on, with what the third takes as with what the first took', async () => {
    await using h = await hazard()
    const { store, serve, endOldTransaction } = await wideningScene(h)
    for (const types of [['New'], ['New', 'Newer'], ['New', 'Newer', 'Newest']]) {
      const commit = await publishOpen(h, 'a', ...types)
      await store.register(ordered('Old', ...types))
      await commit()
      await publishInTurn(h, 'a', 'Old')
      await store.advanceJoining()
      expect(await serve()).toEqual([...types.map((type) => `${type} a`), 'Old a'])
    }
    await endOldTransaction()
    await untilActive(store)
    expect(await serve()).toEqual([])
  })

  test('misses nothing that the first widening was to bring', async () => {
    await using h = await hazard()
    const { store, serve } = await wideningScene(h)
    const commit = await publishOpen(h, 'a', 'New')
    await store.register(ordered('Old', 'New'))
    await commit()
    await store.register(ordered('Old', 'New', 'Newer'))
    await publishInTurn(h, 'a', 'Old')
    await store.advanceJoining()
    expect(await serve()).toEqual(['New a', 'Old a'])
  })

  test('misses nothing if it is swept before it has a barrier', async () => {
    await using h = await hazard()
    const { worker, store, serve } = await wideningScene(h)
    await store.register(ordered('Old', 'New'))
    const registrar = h.worker('registrar')
    const commit = registrar.pool.holdBefore(/^commit/)
    const widening = registrar.store.register(ordered('Old', 'New', 'Newer'))
    await commit.reached
    await publishInTurn(h, 'a', 'Newer', 'Old')
    commit.go()
    await widening
    const lock = await h.connect('lock')
    await lock.query('begin; select 1 from outbox_subscription for update')
    const sweep = worker.pool.holdBefore(/s\.joined_snapshot is null,/)
    const advanced = store.advanceJoining()
    await sweep.reached
    await lock.query('commit')
    sweep.go()
    await advanced
    expect(await serve()).toEqual(['Newer a', 'Old a'])
  })

  test('is served in order by those who do not see it yet', async () => {
    await using h = await hazard()
    const { store, serve } = await wideningScene(h)
    await store.register(ordered('Old', 'New'))
    const registrar = h.worker('registrar')
    const commit = registrar.pool.holdBefore(/^commit/)
    const widening = registrar.store.register(ordered('Old', 'New', 'Newer'))
    await commit.reached
    await publishInTurn(h, 'a', 'Newer', 'Old')
    await store.advanceJoining()
    const served = await serve()
    commit.go()
    await widening
    await store.advanceJoining()
    expect([served, await serve()]).toEqual([[], ['Newer a', 'Old a']])
  })
})
