import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** Something done again and again until a signal aborts. */
export interface PeriodicTask {
  /** The pause between the end of one run and the start of the next, in milliseconds. */
  readonly everyMs: number
  /** 0.2 makes each pause up to 20 % shorter or longer, so that a fleet started together drifts apart. */
  readonly jitter: number
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** Runs first at once if true, else after the first pause. */
  readonly immediately?: boolean
  run(signal: AbortSignal): Promise<void> | void
  /** Told of every failed run; the next one comes after the usual pause. */
  onError(error: unknown): void
}

/** The shortest pause: whatever the options say, a loop never spins. */
const SHORTEST_PAUSE_MS = 1

/** Runs the task until its signal aborts, and resolves when the last run is over. Never rejects. */
export async function runPeriodically(task: PeriodicTask): Promise<void> {
  if (task.immediately !== true) await pause(task)
  while (!task.signal.aborted) {
    await runOnce(task)
    await pause(task)
  }
}

async function runOnce(task: PeriodicTask): Promise<void> {
  try {
    await task.run(task.signal)
  } catch (error) {
    tell(task, error)
  }
}

function tell(task: PeriodicTask, error: unknown): void {
  try {
    task.onError(error)
  } catch {
    // A reporter that fails must not end the work it reports on, and there is nobody left to tell.
  }
}

function pause(task: PeriodicTask): Promise<void> {
  return task.clock.sleep(
    Math.max(SHORTEST_PAUSE_MS, jittered(task.everyMs, task.jitter, task.random)),
    task.signal,
  )
}

/** The value moved at random by at most the given share: `jittered(100, 0.2, random)` lies in 80..120. */
export function jittered(value: number, share: number, random: Random): number {
  return value * (1 - share + 2 * share * random())
}
