// The side of a program that was started by `startProgram`.
import type { FromProgram, ToProgram } from './protocol.ts'

/** What a program hears from whoever started it, and says to them. */
export interface Conversation {
  /** Says that everything is in place, and waits for the start. */
  ready(): Promise<void>
  /** Resolves when the program is asked to stop. */
  readonly stopped: Promise<void>
  /** Says how far it is. */
  progress(value: number): void
  /** Hears how far others are. */
  onCredit(listener: (value: number) => void): void
}

/**
 * Runs a benchmark program: the task comes as JSON on the command line, and what the function returns is its report.
 * The program ends when the report was taken.
 */
export async function runProgram<Task>(
  work: (task: Task, talk: Conversation) => Promise<unknown>,
): Promise<void> {
  // Nobody is left to hear the report: a program must not go on alone.
  const end = (): void => process.exit(1)
  process.once('disconnect', end)
  const task = JSON.parse(process.argv[2] ?? 'null') as Task
  const report = await work(task, conversation())
  await say({ type: 'report', report })
  process.off('disconnect', end)
  process.disconnect()
}

function conversation(): Conversation {
  return {
    ready: async () => {
      const started = told('go')
      await say({ type: 'ready' })
      await started
    },
    stopped: told('stop'),
    progress: (value) => void say({ type: 'progress', value }),
    onCredit: (listener) => {
      process.on('message', (message: ToProgram) => {
        if (message.type === 'credit') listener(message.value)
      })
    },
  }
}

function told(type: ToProgram['type']): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message: ToProgram) => {
      if (message.type === type) resolve()
    })
  })
}

function say(message: FromProgram): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined)
      throw new Error('Started by hand. Run it with: npm run bench -- core, or stream')
    process.send(message, undefined, {}, (error) => (error === null ? resolve() : reject(error)))
  })
}
