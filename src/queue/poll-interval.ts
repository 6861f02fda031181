import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'

/** How often to look for work when nobody says that there is some. */
export interface PollOptions {
  /** The first pause after work has run out, in milliseconds. */
  readonly pollMinMs: number
  /** The longest pause, in milliseconds; with `drain` false, the pause after every claim. */
  readonly pollMs: number
  /** True claims until nothing is left; false makes one claim per pause. */
  readonly drain: boolean
}

// A fleet that was deployed together must not poll together.
const JITTER = 0.2

/**
 * How long to wait before the next claim, in milliseconds, after so many empty ones in a row. While there is work the
 * answer is 0; then the pause doubles from `pollMinMs` to `pollMs`. A fixed period has no jitter: it was asked for.
 */
export function nextPollMs(emptyClaims: number, options: PollOptions, random: Random): number {
  if (!options.drain) return options.pollMs
  if (emptyClaims === 0) return 0
  const pauseMs = Math.min(options.pollMs, options.pollMinMs * 2 ** Math.min(emptyClaims - 1, 30))
  return jittered(pauseMs, JITTER, random)
}
