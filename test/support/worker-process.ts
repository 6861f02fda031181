import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { comes } from './patience.ts'
import { killProgram, type Program, startProgram } from './program.ts'
import type { WorkerConfig, WorkerLine } from './worker-config.ts'

/** How a process ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A worker in a process of its own, which a test may kill, pause and listen to. */
export class WorkerProcess implements AsyncDisposable {
  /** Everything it has told so far. */
  readonly lines: WorkerLine[] = []
  readonly ended: Promise<Ending>
  readonly id: string
  readonly #program: Program

  constructor(config: WorkerConfig) {
    this.id = config.workerId
    this.#program = startProgram('fault-worker', [JSON.stringify(config)])
    this.#program.stdin.on('error', () => undefined) // it may be dead by the time it is told something
    const read = createInterface({ input: this.#program.stdout })
    read.on('line', (line) => this.lines.push(JSON.parse(line) as WorkerLine))
    // What it said last is read after its end.
    this.ended = Promise.all([once(this.#program, 'exit'), once(read, 'close')]).then(([[code, signal]]) => ({
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
    }))
  }

  /** What it has told of one kind. */
  of(kind: string): readonly WorkerLine[] {
    return this.lines.filter((line) => line.kind === kind)
  }

  /** Waits until it has told so many of a kind. */
  async told(kind: string, count = 1): Promise<void> {
    await comes(`${this.id} tells ${count} ${kind}`, () => {
      if (this.#program.exitCode !== null && this.of(kind).length < count) throw new Error(`${this.id} ended`)
      return this.of(kind).length >= count
    })
  }

  get isAlive(): boolean {
    return this.#program.exitCode === null && this.#program.signalCode === null
  }

  signal(signal: NodeJS.Signals): void {
    this.#program.kill(signal)
  }

  /** Lets handlers that hold go on. */
  go(): void {
    this.#program.stdin.write('go\n')
  }

  /** Ends it with SIGKILL. */
  async kill(): Promise<void> {
    await killProgram(this.#program)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
