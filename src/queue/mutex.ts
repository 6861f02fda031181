/** Lets one piece of work run at a time, in the order they came. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs the work when all that came before it has ended, however it ended. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }
}
