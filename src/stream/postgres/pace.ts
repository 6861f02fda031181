import { CommitpostError } from '../../runtime/errors.ts'

/** How the two ends of a log know that the other one is there. */
export interface Pace {
  readonly tellEveryMs: number
  /** After so long without a byte, though it was asked to answer, the server is taken for gone. */
  readonly patienceMs: number
}

const TELL_EVERY_MS = 5_000
/** How often in the time that the server waits for a sign of life it gets one. */
const TELLS_PER_TIMEOUT = 4
/** What PostgreSQL's own receiver has, where the server waits for ever. */
const PATIENCE_MS = 60_000

/** What asking the server for its settings needs. */
interface Settings {
  query(text: string): Promise<{ readonly rows: Record<string, unknown>[] }>
}

/**
 * The server is told well within its `wal_sender_timeout`, which may be 0 for none: a handler's pace has nothing to do with
 * it. And it is waited for as long as it waits itself.
 */
export async function paceOf(server: Settings): Promise<Pace> {
  const { rows } = await server.query("select setting from pg_settings where name = 'wal_sender_timeout'")
  const timeoutMs = Number(rows[0]?.['setting'])
  const patienceMs = timeoutMs > 0 ? timeoutMs : PATIENCE_MS
  return { tellEveryMs: Math.min(TELL_EVERY_MS, patienceMs / TELLS_PER_TIMEOUT), patienceMs }
}

/** Why a log ends whose server was silent for so long. */
export function fellSilent(silentMs: number): CommitpostError {
  const seconds = Math.round(silentMs / 1_000)
  return new CommitpostError(
    'STORE_UNAVAILABLE',
    `The server has sent nothing of the log for ${seconds} s, though it was asked to answer: the log is read on by a new connection.`,
  )
}
