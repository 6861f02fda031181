import type pg from 'pg'
import { comes } from './patience.ts'

/**
 * Settings of a server that forces nothing to disk but what a commit waits for, as far as it allows. Its WAL writer comes all
 * the same, if only every ten seconds: where that would spoil a test, `holdWalWriter`.
 */
export const FORGETFUL = { wal_writer_delay: '10s', bgwriter_lru_maxpages: '0', autovacuum: 'off' } as const

/** A WAL writer that writes nothing any more. */
export interface HeldWalWriter {
  /** To be called once the server has been sent down: it waits for the end of all its processes, and this one is held. */
  kill(): void
}

/**
 * Holds the process that writes down what no commit waits for: from here on all of that is lost in a crash, however long the
 * way to the crash takes.
 */
export async function holdWalWriter(pool: pg.Pool): Promise<HeldWalWriter> {
  let pid: number | undefined
  await comes('the WAL writer is held while it waits', async () => {
    const { pid: found } = await walWriter(pool)
    process.kill(found, 'SIGSTOP')
    // In the middle of writing it would keep all others from it.
    const { waits } = await walWriter(pool)
    if (!waits) process.kill(found, 'SIGCONT')
    pid = found
    return waits
  })
  return {
    kill: () => {
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    },
  }
}

async function walWriter(pool: pg.Pool): Promise<{ readonly pid: number; readonly waits: boolean }> {
  const { rows } = await pool.query<{ pid: number; waits: boolean }>(
    `select pid, wait_event is not distinct from 'WalWriterMain' as waits
       from pg_stat_activity where backend_type = 'walwriter'`,
  )
  const [found] = rows
  if (found === undefined) throw new Error('The server has no WAL writer')
  return found
}
