import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient, comes } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { promote, startStandby } from '../support/standby.ts'
import { numbersOf, type StreamScene, streamScene } from './scene.ts'

bePatient()

describe.skipIf(!postgresAvailable())('a fail-over to a standby', () => {
  const standbys: EmbeddedPostgres[] = []
  afterEach(async () => {
    for (const standby of standbys.splice(0)) await standby.stop('immediate')
  })

  async function standbyOf(primary: EmbeddedPostgres, synchronises: 'on' | 'off'): Promise<EmbeddedPostgres> {
    const standby = await startStandby(primary, { sync_replication_slots: synchronises })
    standbys.push(standby)
    return standby
  }

  test('L9 a synchronised slot is read on, and where there is none what it would have had comes from the table', async () => {
    await using first = await startOwnPostgres()
    await using proxy = await startFaultProxy(first.url)
    await using scene = await streamScene(proxy.urlOf(first.url))
    const reader = scene.work('mirror', { order: 'aggregate' })
    await reader.worker.start()
    await reader.saw('streaming')
    await placeRounds(scene, 10)
    await reader.handled(20)

    const second = await standbyOf(first, 'on')
    await placeRounds(scene, 10)
    await reader.handled(40)
    await untilSynced(scene, second)
    await failOver(first, second)
    proxy.leadTo(second.url)
    await reader.saw('streaming', 2)
    await placeRounds(scene, 10)
    await comes('the last has come', () => numbersOf(reader.events).includes(60))
    expect(reader.told.filter(({ kind }) => kind === 'streamGap')).toEqual([])
    await expectWhole(scene, reader.events, 60)

    const third = await standbyOf(second, 'off')
    await placeRounds(scene, 10)
    await failOver(second, third)
    proxy.leadTo(third.url)
    await reader.saw('streaming', 3)
    await placeRounds(scene, 10)
    await comes('the last has come', () => numbersOf(reader.events).includes(100))
    expect(reader.told).toContainEqual({ kind: 'streamGap', subscription: 'mirror', reason: 'slot-missing' })
    await expectWhole(scene, reader.events, 100)
  })
})

async function placeRounds(scene: StreamScene, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await scene.place('a', 'b')
}

/** The primary is gone from one moment to the next. */
async function failOver(from: EmbeddedPostgres, to: EmbeddedPostgres): Promise<void> {
  await from.kill()
  await promote(to)
}

/**
 * Until the slot could be used if this standby were promoted now. A slot can follow only once that of the primary stands
 * behind a record of what is running, which is written every 15 seconds unless it is asked for.
 */
async function untilSynced({ pool }: StreamScene, standby: EmbeddedPostgres): Promise<void> {
  const client = new pg.Client(standby.url)
  await client.connect()
  try {
    await comes('the slot is synchronised', async () => {
      await pool.query('select pg_log_standby_snapshot()')
      const { rowCount } = await client.query(
        'select 1 from pg_replication_slots where synced and not temporary and invalidation_reason is null',
      )
      return rowCount === 1
    })
  } finally {
    await client.end()
  }
}

/** All of them came, each key in its order, and verify says so. */
async function expectWhole(
  scene: StreamScene,
  events: Parameters<typeof numbersOf>[0],
  count: number,
): Promise<void> {
  expect(new Set(numbersOf(events)).size).toBe(count)
  const seen = new Set<number>()
  const ofA = numbersOf(events.filter(({ aggregateId }) => aggregateId === 'a'))
  const firsts = ofA.filter((n) => !seen.has(n) && seen.add(n))
  expect(firsts).toEqual(firsts.toSorted((one, other) => one - other))
  await comes('verify holds and counts all', async () => {
    const { subscriptions, holds } = await scene.outbox.proof.verify()
    expect(holds).toBe(true)
    return subscriptions[0]?.matched === count && subscriptions[0].awaited === 0
  })
}
