import { uptime } from 'node:os'

/** What is looked at to find out that the machine was suspended. */
export interface TimeSources {
  /** Stands still, on some systems, while the machine is suspended. */
  monotonicMs(): number
  /** Cheap to ask, but somebody may set it. */
  wallMs(): number
  /** Counts the time that the machine was suspended, and nobody can set it; dear to ask. */
  uptimeMs(): number
}

/** So often the wall clock is looked at, at most: what starts within that is as if it had started before. */
const LOOK_EVERY_MS = 1
/** The least that is taken for a suspension: the uptime is known to a hundredth of a second. */
const LEAST_MS = 100

/**
 * Milliseconds that never run backwards and count suspended time, as the database's clock does. A wall clock that jumps
 * says that the machine may have been suspended; the uptime says whether, since a clock that is set looks the same.
 */
export function countingSuspension(sources: TimeSources): () => number {
  const beganMs = sources.monotonicMs()
  const uptimeAhead = sources.uptimeMs() - beganMs
  let wallAhead = sources.wallMs() - beganMs
  let lookedMs = beganMs
  let suspendedMs = 0
  return () => {
    const nowMs = sources.monotonicMs()
    if (nowMs - lookedMs < LOOK_EVERY_MS) return nowMs + suspendedMs
    lookedMs = nowMs
    const ahead = sources.wallMs() - nowMs
    if (Math.abs(ahead - wallAhead) >= LEAST_MS) {
      wallAhead = ahead
      const sleptMs = sources.uptimeMs() - nowMs - uptimeAhead
      if (sleptMs - suspendedMs >= LEAST_MS) suspendedMs = sleptMs
    }
    return nowMs + suspendedMs
  }
}

/** Counts suspended time by this machine's clocks. */
export const systemSinceBootMs: () => number = countingSuspension({
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  uptimeMs: () => uptimeOr(Date.now()),
})

/** Where the system does not tell, the wall clock has to do: a lease is rather given up too early. */
function uptimeOr(otherwiseMs: number): number {
  try {
    return uptime() * 1_000
  } catch {
    return otherwiseMs
  }
}
