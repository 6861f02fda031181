import { appendFile, cp, open, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ExportRecord, type ExportReport, verifyExportFiles } from '../../src/index.ts'
import { rejection } from '../acceptance/support.ts'
import { inTransaction, one } from '../store/postgres/fixtures.ts'
import {
  changeFile,
  manifestOf,
  OPERATOR,
  openScene,
  payments,
  rewriteManifest,
  type Scene,
  sha256,
} from './support.ts'

let scene: Scene
let exported: ExportRecord
/** A copy of the export, to be damaged. */
let copy: string
let copies = 0

beforeAll(async () => {
  scene = await openScene()
  await scene.pay(5)
  const record = await scene.outbox.exports.run({ ...payments(scene), maxFileEvents: 2 })
  if (record === null) throw new Error('nothing was exported')
  exported = record
})
afterAll(async () => {
  await scene[Symbol.asyncDispose]()
})
beforeEach(async () => {
  copies += 1
  copy = join(scene.directory, `copy-${copies}`)
  await cp(exported.location, copy, { recursive: true })
})

const inCopy = (name: string): string => join(copy, name)
const SECOND = 'events-000002.ndjson.gz'

/** Puts a file in the place of another so that manifest and sums fit again, as a forger would. */
async function forge(name: string, content: string): Promise<void> {
  const bytes = gzipSync(content)
  await writeFile(inCopy(name), bytes)
  const ofContent = { contentBytes: Buffer.byteLength(content), contentSha256: sha256(content) }
  await changeFile(copy, name, { bytes: bytes.length, sha256: sha256(bytes), ...ofContent })
}

const problemOf = ({ holds, problem }: ExportReport): readonly unknown[] => [
  holds,
  problem?.kind,
  problem?.file,
  problem?.detail,
]

const damages: readonly (readonly [string, () => Promise<unknown>, string, string | null, RegExp])[] = [
  [
    'a byte that was changed',
    async () => {
      const file = await open(inCopy(SECOND), 'r+')
      const { size } = await file.stat()
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 20)
      await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, size - 20)
      await file.close()
    },
    'changed-file',
    SECOND,
    /^its bytes were changed: SHA-256 [0-9a-f]{64} of \d+ bytes, and the manifest says/,
  ],
  [
    'a file whose end is missing',
    async () => truncate(inCopy(SECOND), 100),
    'truncated-file',
    SECOND,
    /^it has 100 of its \d+ bytes: its end is missing$/,
  ],
  [
    'a file that got longer',
    async () => appendFile(inCopy(SECOND), 'x'),
    'changed-file',
    SECOND,
    /bytes were changed/,
  ],
  ['a file that is missing', async () => rm(inCopy(SECOND)), 'missing-file', SECOND, /^it is not there$/],
  [
    'a file that nobody named',
    async () => writeFile(inCopy('events-000004.ndjson.gz'), ''),
    'extra-file',
    'events-000004.ndjson.gz',
    /^the manifest does not name it$/,
  ],
  [
    'an edited manifest',
    async () => {
      const manifest = await readFile(inCopy('manifest.json'), 'utf8')
      await writeFile(inCopy('manifest.json'), manifest.replace('"shop.payment"', '"shop.coupon"'))
    },
    'manifest-edited',
    'manifest.json',
    /^its SHA-256 is [0-9a-f]{64}, and SHA256SUMS says [0-9a-f]{64}: one of the two was edited$/,
  ],
  ['missing sums', async () => rm(inCopy('SHA256SUMS')), 'missing-file', 'SHA256SUMS', /^it is not there$/],
  [
    'a manifest of another version',
    async () => rewriteManifest(copy, { ...(await manifestOf(copy)), version: 2 }),
    'manifest-unknown',
    'manifest.json',
    /^it is no manifest of a version that is known here$/,
  ],
  [
    'a manifest that leads out of the directory',
    async () => {
      const manifest = await manifestOf(copy)
      await rewriteManifest(copy, { ...manifest, files: [{ ...manifest.files[0], name: '../../secret' }] })
    },
    'manifest-unknown',
    'manifest.json',
    /no manifest/,
  ],
  [
    'a half-written export',
    async () => {
      await rm(inCopy('manifest.json'))
      await rename(inCopy('events-000003.ndjson.gz'), inCopy('events-000003.ndjson.gz.partial'))
    },
    'half-written',
    'events-000003.ndjson.gz.partial',
    /^there is no manifest.json, which is written last: the run that wrote this never came to its end$/,
  ],
  [
    'fewer events than the manifest says',
    async () => forge(SECOND, '{"eventId":"e"}\n'),
    'wrong-content',
    SECOND,
    /^it holds 1 events, and the manifest says 2$/,
  ],
  [
    'lines that are no events',
    async () => forge(SECOND, 'nonsense\n{"eventId":"e"}\n'),
    'wrong-content',
    SECOND,
    /^it holds a line that is no event$/,
  ],
]

describe('without a database', () => {
  test('L6 L11 an export that is as it was written holds, by its directory or its manifest', async () => {
    const expected = {
      holds: true,
      problem: null,
      stream: 'shop.payment',
      firstPosition: '1',
      lastPosition: '5',
      files: 3,
      events: 5,
      exportId: null,
      manifestSha256: exported.manifestSha256,
    }
    expect(await verifyExportFiles(copy)).toMatchObject(expected)
    expect(await verifyExportFiles(inCopy('manifest.json'))).toMatchObject(expected)
  })

  test.each(damages)('L11 %s is named', async (_, damage, kind, file, detail) => {
    await damage()
    const report = await verifyExportFiles(copy)
    expect(problemOf(report)).toEqual([false, kind, file, expect.stringMatching(detail)])
  })

  test('a half-written one is told by the manifest that it does not have', async () => {
    await rm(inCopy('manifest.json'))
    expect(await verifyExportFiles(inCopy('manifest.json'))).toMatchObject({
      problem: { kind: 'half-written' },
    })
  })

  test('what is not there, or is no export, is an error', async () => {
    for (const path of [join(copy, 'nothing'), inCopy(SECOND)]) {
      expect(await rejection(verifyExportFiles(path))).toMatchObject({ code: 'FILE_ERROR' })
    }
    expect(await rejection(verifyExportFiles(''))).toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})

describe('with the database', () => {
  const verifiedAt = (): Promise<unknown> =>
    one(scene.db.pool, 'select verified_at from outbox_export where id = $1', [exported.id])

  test('L6 only an act of an operator makes it verified, and only if it holds', async () => {
    expect(await scene.outbox.exports.verify(copy)).toMatchObject({
      holds: true,
      exportId: exported.id,
      verifiedAt: null,
    })
    expect(await verifiedAt()).toBeNull()
    await truncate(inCopy(SECOND), 10)
    const act = { operator: OPERATOR, note: 'before the purge' }
    expect(await scene.outbox.exports.verify(copy, act)).toMatchObject({ holds: false, verifiedAt: null })
    expect(await verifiedAt()).toBeNull()
    const refused = await rejection(scene.outbox.exports.verify(exported.location, { operator: '' }))
    expect(refused).toMatchObject({ code: 'INVALID_OPTIONS' })
    const report = await scene.outbox.exports.verify(exported.location, act)
    expect(report.holds).toBe(true)
    expect(report.verifiedAt).toBeInstanceOf(Date)
    expect(await verifiedAt()).not.toBeNull()
    const logged = `select to_jsonb(o) from outbox_operator_log o where action = 'export-verify'`
    expect(await one(scene.db.pool, logged)).toMatchObject({
      operator: OPERATOR,
      affected: 5,
      note: act.note,
    })
    expect(await scene.outbox.proof.audit()).toMatchObject({ holds: true })
  })

  test('L11 one that a forger made fit is told by its record', async () => {
    await forge(SECOND, '{"eventId":"a"}\n{"eventId":"b"}\n')
    expect(await verifyExportFiles(copy)).toMatchObject({ holds: true })
    expect(problemOf(await scene.outbox.exports.verify(copy, { operator: OPERATOR }))).toEqual([
      false,
      'record-differs',
      null,
      expect.stringContaining(`the database has recorded export ${exported.id} with the manifest`),
    ])
  })

  test('one that was never recorded is told: its run ended before that', async () => {
    const other = await openScene()
    try {
      const report = await other.outbox.exports.verify(copy)
      expect(problemOf(report)).toEqual([
        false,
        'not-recorded',
        null,
        expect.stringContaining('its run ended before it was recorded'),
      ])
    } finally {
      await other[Symbol.asyncDispose]()
    }
  })

  test('L6 an event of its range that is not in the files is named', async () => {
    const smuggled = '0b8f9e3e-3b5f-4d5e-9d5c-8f1f2a3b4c5d'
    await inTransaction(scene.db, async (client) => {
      await client.query('set local session_replication_role = replica')
      await client.query(
        `insert into outbox_event (event_id, id, stream, event_type, aggregate_type, aggregate_id, payload)
         overriding system value values ($1, 4, 'shop.payment', 'PaymentTaken', 'payment', '9', '{}')`,
        [smuggled],
      )
    })
    expect(problemOf(await scene.outbox.exports.verify(copy))).toEqual([
      false,
      'missing-event',
      SECOND,
      `the database has events that are not in it: ${smuggled}`,
    ])
    await inTransaction(scene.db, async (client) => {
      await client.query('set local session_replication_role = replica')
      await client.query('delete from outbox_event where event_id = $1', [smuggled])
    })
  })
})
