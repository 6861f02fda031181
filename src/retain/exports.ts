import type { Masking } from '../event/masking.ts'
import type { Clock } from '../runtime/clock.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { ExportQuery, ExportRecord, ExportStore } from '../store/export-store.ts'
import { type ExportRunOptions, exportRequest, streamProblem } from './export-options.ts'
import type { ExportReport } from './export-report.ts'

/** Cold exports: streams as files that can be checked years later. */
export interface Exports {
  /**
   * Writes what came after the last export of a stream to compressed NDJSON files in a new directory, with a manifest
   * of hashes, and records it with the operator's act. Null where there was nothing new.
   * @throws NotFoundError for a stream that never had an event; CommitpostError of code FILE_ERROR where it cannot be
   * written, INVALID_STATE where an old transaction does not end, or where somebody else exports the same stream,
   * UNKNOWN_EVENT_TYPE where the catalogue cannot tell what is sensitive and nothing is revealed.
   */
  run(options: ExportRunOptions): Promise<ExportRecord | null>
  /** What was exported, newest first. */
  list(query?: ExportQuery): Promise<readonly ExportRecord[]>
  /**
   * Reads an export again, by its directory or its manifest, and compares it with its manifest, with what the database
   * has recorded, and with the events that it still has. With an act it is recorded as verified, if it holds: only then
   * does retention remove events that must be exported first.
   */
  verify(path: string, act?: OperatorAct): Promise<ExportReport>
}

/** What cold exports are made with. */
export interface ExportsParts {
  openStore(): ExportStore
  readonly masking: Masking
  readonly clock: Clock
}

/** The cold exports of a store, with arguments checked before anything is done. */
export function createExports(parts: ExportsParts): Exports {
  const { masking, clock } = parts
  return {
    run: async (options) => {
      const request = exportRequest(options)
      const { runExport } = await import('./run-export.ts')
      return runExport({ store: parts.openStore(), masking, clock }, request)
    },
    list: async (query = {}) => {
      refuseProblems('listing exports', queryProblems(query))
      return parts.openStore().listExports(query)
    },
    verify: async (path, act) => {
      refuseProblems('verifying an export', [
        textProblem('the path', path ?? null),
        ...(act === undefined ? [] : actProblems(act)),
      ])
      return verified(path, parts.openStore(), act ?? null)
    },
  }
}

/** Reads an export again without a database: its files and its manifest, and nothing else. */
export async function verifyExportFiles(path: string): Promise<ExportReport> {
  refuseProblems('verifyExportFiles', [textProblem('the path', path ?? null)])
  return verified(path, null, null)
}

async function verified(
  path: string,
  store: ExportStore | null,
  act: OperatorAct | null,
): Promise<ExportReport> {
  const { verifyExport } = await import('./verify-export.ts')
  return verifyExport(path, store, act)
}

const MOST_AT_ONCE = 1_000
const ID = /^[1-9]\d{0,18}$/

function queryProblems(query: unknown): readonly (string | null)[] {
  if (!isRecord(query)) return [recordProblem('the query', query)]
  const { stream, before, limit } = query
  return [
    ...unknownOptionProblems(query, ['stream', 'before', 'limit']),
    streamProblem(stream),
    before === undefined || (typeof before === 'string' && ID.test(before))
      ? null
      : `before must be the id of an export, but is ${shown(before)}`,
    wholeNumberProblem('limit', limit, 1, MOST_AT_ONCE),
  ]
}
