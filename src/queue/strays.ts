/** Somebody who runs handlers and may have to give one up: a dispatcher. */
export interface HandlerRuns {
  /** Handlers that have not come back although their attempt is over. */
  readonly abandoned: number
}

/**
 * Handlers of this process that run on although their attempts are over: they ignored their signal when their time was
 * up. Nobody waits for them, but whatever runs meanwhile is not alone, for one of them may yet take the process down.
 */
export class Strays {
  // Weakly: a handler that can still come back holds on to whoever waits for it, and of others nothing is to be feared.
  readonly #watched = new Set<WeakRef<HandlerRuns>>()

  /** Counts its strays from now on. */
  watch(runs: HandlerRuns): void {
    this.#watched.add(new WeakRef(runs))
  }

  /** Whether there is any now. */
  get any(): boolean {
    let found = false
    for (const reference of this.#watched) {
      const runs = reference.deref()
      if (runs === undefined) this.#watched.delete(reference)
      else found ||= runs.abandoned > 0
    }
    return found
  }
}
