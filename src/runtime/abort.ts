import type { Clock } from './clock.ts'
import { DeadlineExceededError } from './errors.ts'

/** A signal that follows others, and the way to stop following them. */
export interface LinkedSignal {
  readonly signal: AbortSignal
  /** Aborts the linked signal alone; the sources are untouched. */
  abort(reason?: unknown): void
  /** Must be called when the work is over: a long-lived source would otherwise collect listeners for ever. */
  unlink(): void
}

/**
 * A signal that aborts when the first of the sources does, with that source's reason.
 * `AbortSignal.any` is not used: it keeps dependants of long-lived sources in memory on Node 20.
 */
export function linkSignals(...sources: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController()
  const unlinks = sources.map((source) => onAbort(source, (reason) => controller.abort(reason)))
  const unlink = (): void => {
    for (const stop of unlinks) stop()
  }
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), unlink }
}

/** Calls back once when the signal aborts, at once if it already has. Returns the way to stop listening. */
export function onAbort(signal: AbortSignal | undefined, callback: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    callback(signal.reason)
    return () => {}
  }
  const listener = (): void => callback(signal.reason)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/** A wait with an end. */
export interface Deadline {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Names what is waited for in the error: "the claim statement". */
  readonly what: string
  /** Ends the wait early, with its own reason. */
  readonly signal?: AbortSignal
}

/**
 * Runs something that may never answer. Rejects with `DeadlineExceededError` when the time is over and with the
 * signal's reason when it aborts; in both cases the signal given to `run` aborts, and a later answer is ignored.
 */
export async function withDeadline<Result>(
  deadline: Deadline,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  deadline.signal?.throwIfAborted()
  const linked = linkSignals(deadline.signal)
  const finished = new AbortController()
  const givenUp = new Promise<never>((_, reject) => {
    onAbort(linked.signal, (reason) => reject(reason))
  })
  void deadline.clock.sleep(deadline.timeoutMs, finished.signal).then(() => {
    if (!finished.signal.aborted) linked.abort(new DeadlineExceededError(deadline.what, deadline.timeoutMs))
  })
  try {
    return await Promise.race([givenUp, run(linked.signal)])
  } finally {
    finished.abort()
    linked.unlink()
  }
}
