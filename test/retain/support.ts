import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type Catalogue, defineEvents, type ExportManifest, type Outbox, unchecked } from '../../src/index.ts'
import { createOutbox, type OutboxOptions } from '../../src/outbox.ts'
import type { ExportFile } from '../../src/retain/export-manifest.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { createOutboxDatabase, type OutboxDatabase } from '../store/postgres/fixtures.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'

export const OPERATOR = 'kim'
export const CARD = '4111-1111-1111-1111'

export interface Payment {
  readonly amount: number
  readonly card: { readonly number: string }
}

export const events = defineEvents({
  PaymentTaken: {
    stream: 'shop.payment',
    aggregate: 'payment',
    schema: unchecked<Payment>(),
    sensitive: ['card.number'],
  },
  CouponIssued: {
    stream: 'shop.coupon',
    aggregate: 'coupon',
    schema: unchecked<{ readonly code: string }>(),
  },
})

export type Shop = Outbox<typeof events, Transaction>

/** A shop with an outbox in a schema of its own, and a directory for what it exports. */
export interface Scene extends AsyncDisposable {
  readonly db: OutboxDatabase
  readonly outbox: Shop
  readonly directory: string
  /** Another outbox on the same tables. */
  outboxWith(options: Partial<OutboxOptions<Catalogue, Transaction>>): Shop
  /** Publishes so many payments, each in a transaction of its own. Returns their ids. */
  pay(count: number): Promise<readonly string[]>
}

export async function openScene(): Promise<Scene> {
  const db = await createOutboxDatabase()
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-export-'))
  const outboxWith: Scene['outboxWith'] = (options) =>
    createOutbox({ store: postgresStore({ pool: db.pool, schema: db.schema }), ...options, events })
  const outbox = outboxWith({})
  const pay: Scene['pay'] = async (count) => {
    const ids: string[] = []
    for (let n = 1; n <= count; n += 1) {
      const payload = { amount: n, card: { number: CARD } }
      ids.push(
        await outbox.inTransaction(db.pool, (tx) =>
          outbox.publish(tx, 'PaymentTaken', { aggregateId: n, payload, headers: { traceId: `t${n}` } }),
        ),
      )
    }
    return ids
  }
  return {
    db,
    outbox,
    directory,
    outboxWith,
    pay,
    [Symbol.asyncDispose]: async () => {
      await rm(directory, { recursive: true, force: true })
      await db.drop()
    },
  }
}

/** The options of an export of the payments. */
export function payments({ directory }: Pick<Scene, 'directory'>): {
  readonly stream: string
  readonly directory: string
  readonly operator: string
  readonly waitMs: number
} {
  // Whatever else is done on the server is waited for.
  return { stream: 'shop.payment', directory, operator: OPERATOR, waitMs: PATIENCE_MS }
}

export async function manifestOf(directory: string): Promise<ExportManifest> {
  return JSON.parse(await readFile(join(directory, 'manifest.json'), 'utf8')) as ExportManifest
}

/** All lines of an export, as texts. */
export async function linesOf(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.gz')).toSorted()
  const texts = await Promise.all(
    names.map(async (name) => gunzipSync(await readFile(join(directory, name))).toString('utf8')),
  )
  return texts.flatMap((text) => text.trimEnd().split('\n'))
}

/** All events of an export. */
export async function rowsOf(directory: string): Promise<readonly Record<string, unknown>[]> {
  return (await linesOf(directory)).map((line) => JSON.parse(line) as Record<string, unknown>)
}

export const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

/** Writes another manifest so that the sums fit again, as a forger would. */
export async function rewriteManifest(directory: string, manifest: object): Promise<void> {
  const text = `${JSON.stringify(manifest, null, 2)}\n`
  await writeFile(join(directory, 'manifest.json'), text)
  const path = join(directory, 'SHA256SUMS')
  const sums = await readFile(path, 'utf8')
  await writeFile(path, sums.replace(/^\S+ {2}manifest\.json$/m, `${sha256(text)}  manifest.json`))
}

/** Makes the manifest say something else of one file. */
export async function changeFile(
  directory: string,
  name: string,
  change: Partial<ExportFile>,
): Promise<void> {
  const manifest = await manifestOf(directory)
  const files = manifest.files.map((file) => (file.name === name ? { ...file, ...change } : file))
  await rewriteManifest(directory, { ...manifest, files })
}
