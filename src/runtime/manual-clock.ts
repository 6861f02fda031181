import type { Clock } from './clock.ts'

interface Sleeper {
  readonly dueMs: number
  wake(): void
}

/** A clock that stands still until a test moves it. Exported to users by `commitpost/testing`. */
export class ManualClock implements Clock {
  #elapsedMs = 0
  readonly #startedAtMs: number
  readonly #sleepers = new Set<Sleeper>()
  readonly #watchers: { readonly count: number; readonly resolve: () => void }[] = []

  constructor(startsAt: Date = new Date('2026-01-01T00:00:00.000Z')) {
    this.#startedAtMs = startsAt.getTime()
  }

  /** The start plus what was advanced. */
  now(): Date {
    return new Date(this.#startedAtMs + this.#elapsedMs)
  }

  /** What was advanced. */
  monotonicMs(): number {
    return this.#elapsedMs
  }

  /** Sleeps until the clock is advanced that far, or the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { dueMs: this.#elapsedMs + Math.max(0, ms), wake }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', wake, { once: true })
      this.#tellWatchers()
    })
  }

  /** How many sleep now. */
  get sleeping(): number {
    return this.#sleepers.size
  }

  /** How long until the next sleeper is due; null if nobody sleeps. */
  get nextWakeInMs(): number | null {
    const next = this.#next(Number.POSITIVE_INFINITY)
    return next === null ? null : next.dueMs - this.#elapsedMs
  }

  /** Resolves as soon as at least `count` are asleep: the event to wait for before advancing. */
  untilSleeping(count = 1): Promise<void> {
    if (this.#sleepers.size >= count) return Promise.resolve()
    return new Promise((resolve) => {
      this.#watchers.push({ count, resolve })
    })
  }

  /** Moves time on, waking sleepers in order and letting each do its work before the next. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms
    await letOthersRun()
    for (let next = this.#next(untilMs); next !== null; next = this.#next(untilMs)) {
      this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs)
      next.wake()
      await letOthersRun()
    }
    this.#elapsedMs = untilMs
  }

  #next(untilMs: number): Sleeper | null {
    let next: Sleeper | null = null
    for (const sleeper of this.#sleepers) {
      if (sleeper.dueMs <= untilMs && (next === null || sleeper.dueMs < next.dueMs)) next = sleeper
    }
    return next
  }

  #tellWatchers(): void {
    for (let index = this.#watchers.length - 1; index >= 0; index -= 1) {
      const watcher = this.#watchers[index]
      if (watcher === undefined || watcher.count > this.#sleepers.size) continue
      this.#watchers.splice(index, 1)
      watcher.resolve()
    }
  }
}

// A turn of the event loop, so that everything already resolved has had its say.
function letOthersRun(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
