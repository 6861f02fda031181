import { setTimeout as sleep } from 'node:timers/promises'
import { sharedMs } from './clock.ts'

/** Whether it is over in time. Its failure is thrown. */
export async function isOver(step: Promise<unknown>, patienceMs: number): Promise<boolean> {
  const patience = new AbortController()
  // The timer also keeps the process alive: one with nothing left but a promise would end without a word.
  const late = sleep(patienceMs, false, { signal: patience.signal }).catch(() => false)
  try {
    return await Promise.race([step.then(() => true), late])
  } finally {
    patience.abort()
  }
}

/** Fails, naming the step, if it is not over in time: a run that waits for good would never be judged. */
export async function within(
  patienceMs: number,
  what: string | (() => string),
  step: Promise<unknown>,
): Promise<void> {
  if (await isOver(step, patienceMs)) return
  throw new Error(inVain(patienceMs, what))
}

/** What is said of a step that was not over in time. */
export function inVain(patienceMs: number, what: string | (() => string)): string {
  return `Waited ${patienceMs} ms in vain: ${typeof what === 'string' ? what : what()}`
}

/**
 * Whether nothing waits in the end. It is waited for as long as it gets less: a machine that does much else is slow, and what
 * is stuck stays as it is. Null where nobody knows.
 */
export async function comesToRest(waiting: () => number | null, patienceMs: number): Promise<boolean> {
  let least = Number.POSITIVE_INFINITY
  for (let deadline = sharedMs() + patienceMs; ; await sleep(50)) {
    const now = waiting() ?? least
    if (now === 0) return true
    if (now < least) deadline = sharedMs() + patienceMs
    else if (sharedMs() > deadline) return false
    least = Math.min(least, now)
  }
}
