import { systemSinceBootMs } from './suspension.ts'

/** Time, handed in so that tests own it. Leases and schedules go by the database's clock, never by this one. */
export interface Clock {
  /** The wall clock. It may jump: for showing and for events' times, never for durations. */
  now(): Date
  /** Milliseconds since some fixed point, never running backwards: for durations and deadlines. */
  monotonicMs(): number
  /**
   * The same, but counting the time in which the machine was suspended: for leases, which lapse meanwhile.
   * @default monotonicMs
   */
  sinceBootMs?(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects: waking early is not an error. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest wait `setTimeout` can hold; anything longer fires at once. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** The real clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sinceBootMs: systemSinceBootMs,
  sleep: sleepOnTimers,
}

/** The clock by which leases are judged: as a suspended machine's leases lapse, its time goes on. */
export function leaseClock(clock: Clock): Clock {
  if (!('sinceBootMs' in clock)) return clock
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.sinceBootMs?.() ?? clock.monotonicMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  }
}

async function sleepOnTimers(ms: number, signal?: AbortSignal): Promise<void> {
  // NaN counts as no wait; a chain of timers carries waits of more than 24 days.
  let leftMs = ms > 0 ? ms : 0
  while (leftMs > LONGEST_TIMER_MS && signal?.aborted !== true) {
    await oneTimer(LONGEST_TIMER_MS, signal)
    leftMs -= LONGEST_TIMER_MS
  }
  await oneTimer(leftMs, signal)
}

function oneTimer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    signal?.addEventListener('abort', wake, { once: true })
  })
}
