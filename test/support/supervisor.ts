/** A process that ends, or is killed. */
export interface Supervised {
  readonly ended: Promise<unknown>
  kill(): Promise<void>
}

/** Starts a process again whenever it dies, as an orchestrator would. */
export class Supervisor<Process extends Supervised> implements AsyncDisposable {
  readonly #start: (life: number) => Process
  readonly #bury: (life: number) => Promise<void>
  readonly #supervising: Promise<void>
  #process: Process
  #stopping = false
  /** How often it has died. */
  deaths = 0

  /** Each life ends with `bury`, before the next one begins. */
  constructor(start: (life: number) => Process, bury: (life: number) => Promise<void>) {
    this.#start = start
    this.#bury = bury
    this.#process = start(1)
    this.#supervising = this.#supervise()
  }

  /** The one that runs now. */
  get process(): Process {
    return this.#process
  }

  async #supervise(): Promise<void> {
    for (;;) {
      await this.#process.ended
      this.deaths += 1
      await this.#bury(this.deaths)
      if (this.#stopping) return
      this.#process = this.#start(this.deaths + 1)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true
    await this.#process.kill()
    await this.#supervising
  }
}
