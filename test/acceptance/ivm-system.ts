import { createHash } from 'node:crypto'
import type { PoolClient } from 'pg'
import { z } from 'zod'
import { defineEvents, type PayloadInput } from '../../src/index.ts'
import { openSystem, type System } from './support.ts'

export const ivmEvents = defineEvents({
  RawDataIngested: {
    stream: 'ivm.events.raw_data',
    aggregate: 'raw_data',
    schema: z.object({
      tenantId: z.string(),
      entityKey: z.string(),
      version: z.int(),
      contentHash: z.string(),
      schemaId: z.string(),
      schemaVersion: z.string(),
    }),
  },
  SliceCreated: {
    stream: 'ivm.events.slice',
    aggregate: 'slice',
    schema: z.object({
      tenantId: z.string(),
      entityKey: z.string(),
      sliceType: z.string(),
      sliceVersion: z.int(),
      contentHash: z.string(),
    }),
  },
  ChangesetCreated: { stream: 'ivm.events.changeset', aggregate: 'changeset' },
})

export type IvmEvents = typeof ivmEvents
export type Ivm = System<IvmEvents>

const TABLES = `
  create table raw_data (
    tenant_id text not null, entity_key text not null, version bigint not null, content_hash text not null,
    primary key (tenant_id, entity_key, version));
  create table slice (
    aggregate_id text not null, version bigint not null, applied integer not null default 1,
    primary key (aggregate_id, version));`

export const openIvm = (): Promise<Ivm> => openSystem(ivmEvents, { tables: TABLES })

export interface IngestRequest {
  readonly tenantId: string
  readonly entityKey: string
  readonly version: number
  readonly content: string
}

export const product: IngestRequest = {
  tenantId: 'tenant-1',
  entityKey: 'product-123',
  version: 1,
  content: '{"price":100}',
}

export function payloadOf({
  content,
  ...request
}: IngestRequest): PayloadInput<IvmEvents, 'RawDataIngested'> {
  const contentHash = `sha256:${createHash('sha256').update(content).digest('hex')}`
  return { ...request, contentHash, schemaId: 'product.v1', schemaVersion: '1.0.0' }
}

/** As section 6-2 of the RFC has it. */
export const slice: PayloadInput<IvmEvents, 'SliceCreated'> = {
  tenantId: 'tenant-1',
  entityKey: 'product-123',
  sliceType: 'CORE',
  sliceVersion: 1,
  contentHash: 'sha256:0',
}

/** The polling worker of version 1: every second, at most a hundred. */
export const POLLING = { pollMs: 1_000, batchSize: 100, drain: false } as const

/** The workflow of the RFC: business row and event in one transaction; a put that was made before changes nothing. */
export async function ingest(
  ivm: Ivm,
  request: IngestRequest,
  then = async (_tx: PoolClient) => {},
): Promise<string | null> {
  const { outbox, pool } = ivm
  return outbox.inTransaction(pool, async (tx) => {
    const payload = payloadOf(request)
    const { rowCount } = await tx.query(
      'insert into raw_data values ($1, $2, $3, $4) on conflict (tenant_id, entity_key, version) do nothing',
      [request.tenantId, request.entityKey, request.version, payload.contentHash],
    )
    const aggregateId = `${request.tenantId}:${request.entityKey}`
    const id = rowCount === 1 ? await outbox.publish(tx, 'RawDataIngested', { aggregateId, payload }) : null
    await then(tx)
    return id
  })
}
