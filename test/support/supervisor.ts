/** A process that ends, or is killed. */
export interface Supervised {
  readonly ended: Promise<unknown>
  kill(): Promise<void>
}

/** Starts a process again whenever it dies, as an orchestrator would. */
export class Supervisor<Process extends Supervised> implements AsyncDisposable {
  readonly #start: (life: number) => Process
  #process: Process
  #stopping = false
  /** How often it has died. */
  deaths = 0

  constructor(start: (life: number) => Process) {
    this.#start = start
    this.#process = this.#live()
  }

  /** The one that runs now. */
  get process(): Process {
    return this.#process
  }

  #live(): Process {
    const process = this.#start(this.deaths + 1)
    void process.ended.then(() => {
      this.deaths += 1
      if (!this.#stopping) this.#process = this.#live()
    })
    return process
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true
    await this.#process.kill()
  }
}
