import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import type {
  ArchiveTable,
  RetentionRequest,
  RetentionStep,
  RetentionStore,
} from '../../../src/store/retention-store.ts'
import { createProofDatabase, type ProofDatabase } from './proof-fixtures.ts'

/** A migrated schema with a worker to deliver, the proof, and retention. */
export interface RetentionDatabase extends ProofDatabase {
  readonly retention: RetentionStore
}

export async function createRetentionDatabase(): Promise<RetentionDatabase> {
  const db = await createProofDatabase()
  return { ...db, retention: postgresStore({ pool: db.pool, schema: db.schema }).retention }
}

/** Everything that is done goes at once, unless told otherwise. */
export const policyOf = (overrides: Partial<RetentionRequest> = {}): RetentionRequest => ({
  policy: 'all',
  stream: '*',
  before: [],
  keepSeconds: 0,
  archive: null,
  mask: null,
  requireExport: false,
  ...overrides,
})

/** The archive of a test: in its own schema, so that it goes with it. */
export const archiveOf = ({ schema }: RetentionDatabase, table = 'kept_events'): ArchiveTable => ({
  schema,
  table,
})

export const PACE = { batchSize: 100, pauseMs: 0, share: 1 }

const KIM = { operator: 'kim', note: null }

/** Begins a run and steps through it to its end. Returns what it did. */
export async function retain(
  { retention }: Pick<RetentionDatabase, 'retention'>,
  overrides: Partial<RetentionRequest> = {},
  batchSize = PACE.batchSize,
): Promise<Pick<RetentionStep, 'deleted' | 'archived'>> {
  const request = policyOf(overrides)
  if (request.archive !== null) await retention.ensureArchive(request.archive)
  const runId = (await retention.beginRetention(request, null)) as string
  const all = { deleted: 0, archived: 0 }
  for (;;) {
    const step = await retention.stepRetention(runId, 'test', { ...PACE, batchSize }, KIM)
    all.deleted += step.deleted
    all.archived += step.archived
    if (step.state === 'done') return all
    if (step.state === 'busy') throw new Error('nobody else should be at it')
  }
}
