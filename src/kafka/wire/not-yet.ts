import type { Clock } from '../../runtime/clock.ts'
import { WireError } from './wire-error.ts'

/** A topic that is not known, one without a leader or with another, a coordinator that is not there or still loads. */
const NOT_YET: ReadonlySet<number> = new Set([3, 5, 6, 14, 15])
const ASK_AGAIN_AFTER_MS = [100, 200, 400, 800, 1_600]

/** Whether it failed only because it was too early. */
function isNotYet(error: unknown): boolean {
  return error instanceof WireError && NOT_YET.has(error.code)
}

/** The one that decides what is to be done: one that asking again does not help, where there is any. */
export function worstOf<Failure extends Error>(failures: readonly Failure[]): Failure | null {
  return failures.find((failure) => !isNotYet(failure)) ?? failures[0] ?? null
}

/** Asks again for a while what a broker that has just begun, or a topic that was just made, has no answer to yet. */
export async function untilReady<Answer>(clock: Clock, ask: () => Promise<Answer>): Promise<Answer> {
  for (const pauseMs of ASK_AGAIN_AFTER_MS) {
    try {
      return await ask()
    } catch (error) {
      if (!isNotYet(error)) throw error
      await clock.sleep(pauseMs)
    }
  }
  return ask()
}
