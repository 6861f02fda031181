import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ExportManifest, type ExportRecord, verifyExportFiles } from '../../src/index.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { type Ledger, openLedger } from './ledger-system.ts'
import { rejection } from './support.ts'

const AUDITOR = 'auditor@example.com'

let ledger: Ledger
let directory: string

beforeEach(async () => {
  ledger = await openLedger()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-trail-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true })
  await ledger[Symbol.asyncDispose]()
})

/** Posts these amounts to the account, each in a transaction of its own. */
async function post(...amounts: readonly number[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const amount of amounts) {
    const payload = { transactionId: `tx-${amount}`, accountId: 'acc-1', amount, balanceAfter: amount }
    ids.push(await ledger.publish('LedgerPosted', { aggregateId: payload.transactionId, payload }))
  }
  return ids
}

async function exportLedger(): Promise<ExportRecord> {
  const exported = await ledger.outbox.exports.run({
    stream: 'ledger-events',
    directory,
    operator: AUDITOR,
    waitMs: PATIENCE_MS,
  })
  if (exported === null) throw new Error('there was nothing to export')
  return exported
}

async function eventsIn({ location }: ExportRecord): Promise<readonly Record<string, unknown>[]> {
  const names = (await readdir(location)).filter((name) => name.endsWith('.gz'))
  const texts = await Promise.all(names.map(async (name) => gunzipSync(await readFile(join(location, name)))))
  return texts.flatMap((text) =>
    text
      .toString('utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  )
}

describe('the trail of the ledger', () => {
  test('L11 every posting is in exactly one of the exports, with its sequence number, and each names the one before', async () => {
    const first = [await post(100, 200), await exportLedger()] as const
    const second = [await post(300), await exportLedger()] as const
    const rows = [...(await eventsIn(first[1])), ...(await eventsIn(second[1]))]
    expect(rows.map((row) => row['eventId'])).toEqual([...first[0], ...second[0]])
    expect(rows.map((row) => row['sequence'])).toEqual([1, 2, 3])
    expect(rows[2]).toMatchObject({ type: 'LEDGER_POSTED', payload: { amount: 300 }, orderingKey: 'acc-1' })
    const text = await readFile(join(second[1].location, 'manifest.json'), 'utf8')
    const { previousManifestSha256 } = JSON.parse(text) as ExportManifest
    expect(previousManifestSha256).toBe(first[1].manifestSha256)
    expect(await ledger.outbox.proof.audit()).toMatchObject({
      holds: true,
      exports: { entries: 2, broken: null },
    })
  })

  test('L6 U8 what was not exported and verified does not count as safe to remove', async () => {
    const [eventId] = await post(100)
    const isSafe = (): Promise<boolean> =>
      ledger.value(`select outbox_is_exported('ledger-events', 1, $1)`, [eventId])
    expect(await isSafe()).toBe(false)
    const { location } = await exportLedger()
    expect(await isSafe()).toBe(false)
    await ledger.outbox.exports.verify(location)
    expect(await isSafe()).toBe(false)
    expect(await rejection(ledger.outbox.exports.verify(location, { operator: ' ' }))).toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await ledger.outbox.exports.verify(location, { operator: AUDITOR })
    expect(await isSafe()).toBe(true)
  })

  test('L11 years later, without the database, a tampered file is found; with it, also one that was made to fit', async () => {
    await post(100)
    const { location } = await exportLedger()
    expect(await verifyExportFiles(location)).toMatchObject({ holds: true, events: 1 })
    await appendFile(join(location, 'events-000001.ndjson.gz'), Buffer.from([0]))
    expect(await verifyExportFiles(location)).toMatchObject({
      holds: false,
      problem: { kind: 'changed-file', file: 'events-000001.ndjson.gz' },
    })
    await ledger.pool.query(
      `begin; set local session_replication_role = replica;
       update outbox_export set manifest_sha256 = repeat('a', 64); commit`,
    )
    expect(await ledger.outbox.proof.audit()).toMatchObject({
      holds: false,
      exports: { broken: { entry: '1', problem: 'changed' } },
    })
  })
})
