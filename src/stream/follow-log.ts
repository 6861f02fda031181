import type { Clock } from '../runtime/clock.ts'
import type { LogGap, LogSession, OpenLog, StreamProgress } from '../store/stream-store.ts'
import type { LogRun } from './log-run.ts'
import { type LogPlace, ProgressRecorder } from './progress-recorder.ts'

/** What following the log needs from the turn it is part of. */
export interface FollowParts {
  newRun(onPassed: (places: readonly LogPlace[]) => void): LogRun<LogPlace>
  record(progress: StreamProgress): Promise<boolean>
  readonly settledAt: bigint
  readonly clock: Clock
  /** Until when to read. */
  readonly until: AbortSignal
  onBegun(): void
  onFailed(error: unknown): void
}

/**
 * Reads the log until told, then waits for what runs and records how far it came. Resolves with why if the log does not
 * have everything.
 */
export async function followLog(session: LogSession, parts: FollowParts): Promise<LogGap | null> {
  let log: OpenLog | null = null
  const recorder = new ProgressRecorder({ ...parts, confirm: (lsn) => log?.confirm(lsn) })
  const run = parts.newRun((places) => recorder.passed(places))
  const hold = holder(run, () => log)
  const begun = await session.read({
    event: (event) => {
      const isKept = run.offer(event)
      if (isKept) hold()
      return isKept
    },
    commit: (lsn) => run.mark({ lsn, snapshot: null }),
    mark: (snapshot, lsn) => run.mark({ lsn, snapshot }),
    ended: (error) => {
      if (error !== null) parts.onFailed(error)
    },
  })
  if (typeof begun === 'string') return begun
  log = begun
  parts.onBegun()
  // It may have been filled before there was anything to hold.
  hold()
  await aborted(parts.until)
  log.pause()
  await run.stop()
  await recorder.flush()
  return null
}

/** Lets the server wait while too much is in hand, and go on once there is room. */
function holder(run: LogRun<LogPlace>, openLog: () => OpenLog | null): () => void {
  let isHeld = false
  return () => {
    const log = openLog()
    if (isHeld || log === null || !run.isFull) return
    isHeld = true
    log.pause()
    void run.room().then(() => {
      isHeld = false
      log.resume()
    })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
