import type { Clock } from '../runtime/clock.ts'

/** Somebody to be told that there may be work. */
export interface Wakeable {
  wake(): void
}

/** Notifications take a lock of the whole server when they commit: under a load, a few hundred a second per process. */
const NOTIFY_EVERY_MS = 3
/** Where commits come so thick that workers find something whenever they look, fewer do. */
const CROWDED_EVERY_MS = 20
/** So many commits between two notifications are thick. */
const CROWD = 4
/** So many may go out without a pause: where commits are few, none is told of late because another came just before. */
const NOTIFIES_AT_ONCE = 5

/** Tells the workers of this process at once, and those of others soon, that there may be work. */
export class WakeBell {
  readonly #wakeables = new Set<Wakeable>()
  readonly #notify: (() => Promise<void>) | null
  readonly #clock: Clock
  #notifying = false
  /** Commits that nobody in another process was told of yet. */
  #untold = 0
  /** Commits since the last notification. */
  #commits = 0
  /** Up to when the pauses are kept for what was sent so far. */
  #paidUntilMs = Number.NEGATIVE_INFINITY

  /** `notify` reaches other processes; null where nobody is to be told. */
  constructor(notify: (() => Promise<void>) | null, clock: Clock) {
    this.#notify = notify
    this.#clock = clock
  }

  /** Adds a worker of this process. Returns the way to take it out again. */
  add(wakeable: Wakeable): () => void {
    this.#wakeables.add(wakeable)
    return () => {
      this.#wakeables.delete(wakeable)
    }
  }

  /**
   * Any number of calls is as good as one. Never throws. `notifyHere` is called, before this returns, in place of the
   * bell's own way if others are to be told at once.
   */
  ring(notifyHere?: () => Promise<void>): void {
    this.wakeHere()
    this.#untold += 1
    if (this.#notify !== null && !this.#notifying)
      void this.#notifyOthers(notifyHere ?? this.#notify, this.#notify)
  }

  /** Wakes the workers of this process, after a commit that those of others were told of together with it. */
  wakeHere(): void {
    this.#commits += 1
    for (const wakeable of this.#wakeables) wakeable.wake()
  }

  /** Whether others may be told together with a commit that is about to be sent. True counts as a notification. */
  mayTellNow(): boolean {
    if (this.#notify === null || this.#notifying || this.#pauseMs() > 0) return false
    this.#count()
    return true
  }

  async #notifyOthers(first: () => Promise<void>, later: () => Promise<void>): Promise<void> {
    this.#notifying = true
    for (let notify = first; this.#untold > 0; notify = later) {
      const pauseMs = this.#pauseMs()
      if (pauseMs > 0) {
        await this.#clock.sleep(pauseMs)
        notify = later
      }
      this.#untold = 0
      this.#count()
      await notify().catch(() => {})
    }
    this.#notifying = false
  }

  /** How long to wait before the next one, so that there are no more of them in the long run than one every so often. */
  #pauseMs(): number {
    return this.#paidUntilMs - this.#clock.monotonicMs()
  }

  #count(): void {
    const everyMs = this.#commits >= CROWD ? CROWDED_EVERY_MS : NOTIFY_EVERY_MS
    const mostSavedMs = NOTIFIES_AT_ONCE * NOTIFY_EVERY_MS
    this.#commits = 0
    this.#paidUntilMs = Math.max(this.#paidUntilMs, this.#clock.monotonicMs() - mostSavedMs) + everyMs
  }
}
