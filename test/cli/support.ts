import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { defineEvents } from '../../src/event/define-events.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { createOutbox } from '../../src/outbox.ts'
import { NonRetryableError } from '../../src/runtime/errors.ts'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { TestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'

/** What may be chosen about a run of the program. */
export interface CliOptions {
  /** Besides a small environment that does not depend on who runs the tests. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The compiled program, where it is not the usual one. */
  readonly program?: string
}

/** A run that is over. */
export interface CliResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A run that goes on. */
export class RunningCli {
  readonly process: ChildProcess
  readonly ended: Promise<CliResult>
  #stdout = ''
  #stderr = ''
  #changed: () => void = () => undefined

  constructor(child: ChildProcess) {
    this.process = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
      this.#changed()
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
      this.#changed()
    })
    this.ended = once(child, 'close').then(([code]) => {
      this.#changed()
      return { code: code as number | null, stdout: this.#stdout, stderr: this.#stderr }
    })
  }

  /** Resolves once the standard output has a line with this text; fails if the program ends without one. */
  line(text: string): Promise<string> {
    return this.#lineOf(() => this.#stdout, text)
  }

  /** The same of the standard error. */
  note(text: string): Promise<string> {
    return this.#lineOf(() => this.#stderr, text)
  }

  async #lineOf(read: () => string, text: string): Promise<string> {
    let isOver = false
    void this.ended.then(() => {
      isOver = true
    })
    for (;;) {
      const lines = read().split('\n').slice(0, -1)
      const found = lines.find((line) => line.includes(text))
      if (found !== undefined) return found
      if (isOver) throw new Error(`The program ended without "${text}":\n${this.#stdout}\n${this.#stderr}`)
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name)
  }
}

/** Starts the real program, `commitpost <args>`. */
export function startCli(args: readonly string[], options: CliOptions = {}): RunningCli {
  const program = options.program ?? join(compiledDirectory, 'src', 'cli', 'main.js')
  const { PATH = '', HOME = '', TMPDIR } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH,
      HOME,
      ...(TMPDIR === undefined ? {} : { TMPDIR }),
      TZ: 'UTC',
      LANG: 'C.UTF-8',
      ...options.env,
    },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  return new RunningCli(child)
}

/** Runs the real program to its end. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const running = startCli(args, options)
  running.process.stdin?.end()
  return running.ended
}

/** The options that lead a command to a test's own schema. */
export function at({ url, schema }: TestDatabase): readonly string[] {
  return ['--database', url, '--schema', schema]
}

/** A payload that would colour and clear the terminal of whoever prints it as it is. */
export const hostilePayload: object = { text: 'red \u001b[31m, clear \u009b2J, 한글' }

/** Lets one event of a subscription "mailer" fail for good, with the real worker. Returns the dead letter's id. */
export async function makeDeadLetter({ pool, schema }: TestDatabase): Promise<string> {
  await migrateUp(pool, { schema })
  const events = defineEvents({
    OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
  })
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
  let tell: () => void = () => undefined
  const died = new Promise<void>((resolve) => {
    tell = resolve
  })
  const worker = outbox.worker(
    [
      outbox.subscription('mailer', {
        on: {
          OrderPlaced: () => {
            throw new NonRetryableError('card refused, ask password=hunter2', { failureCode: 'CARD_REFUSED' })
          },
        },
      }),
    ],
    { observers: [({ kind }) => (kind === 'dead' ? tell() : undefined)] },
  )
  await worker.active()
  await outbox.inTransaction(pool, (tx) =>
    outbox.publish(tx, 'OrderPlaced', { aggregateId: 7, payload: hostilePayload }),
  )
  await died
  await worker.stop()
  const [letter] = await outbox.deadLetters.list()
  return letter?.id ?? ''
}
