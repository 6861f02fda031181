import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../src/testing/index.ts'
import { PATIENCE_MS } from './patience-ms.ts'

/** Starts a server of a test's own, with as much time to start as a test has for anything. */
export function startOwnPostgres(options: EmbeddedPostgresOptions = {}): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ startTimeoutMs: PATIENCE_MS, ...options })
}
