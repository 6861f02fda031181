import type { Formats } from '../runtime/formats.ts'
import type { Language, Localized } from '../runtime/language.ts'
import type { ExitCode } from './cli-error.ts'
import type { Messages } from './messages/messages.ts'
import type { OptionSpec, OptionSpecs, ValuesOf } from './option-spec.ts'
import type { GlobalValues } from './options.ts'
import type { Services } from './services.ts'
import type { Terminal } from './terminal.ts'

/** One command of the program, as written in its file. */
export interface CommandDefinition<Options extends OptionSpecs, Operands extends OptionSpecs> {
  /** The words that call it: `dlq list`. */
  readonly name: string
  readonly summary: Localized
  /** What `--help` says beyond the summary. */
  readonly details?: Localized
  /** What follows the name, in this order. All of it is required. */
  readonly operands: Operands
  readonly options: Options
  run(invocation: Invocation<ValuesOf<Options> & ValuesOf<Operands>>): Promise<ExitCode>
}

/** A command with the types of its options forgotten: what the table of commands holds. */
export interface Command {
  readonly name: string
  readonly summary: Localized
  readonly details: Localized | null
  readonly operands: Readonly<Record<string, OptionSpec<unknown>>>
  readonly options: Readonly<Record<string, OptionSpec<unknown>>>
  run(invocation: Invocation<Readonly<Record<string, unknown>>>): Promise<ExitCode>
}

/** Everything a running command works with. */
export interface Invocation<Values> {
  /** The command's own options and operands, read and checked. */
  readonly values: Values
  readonly globals: GlobalValues
  readonly terminal: Terminal
  readonly language: Language
  readonly messages: Messages
  readonly formats: Formats
  readonly services: Services
  readonly process: CommandProcess
}

/** What a command may know of and ask from the process it runs in. */
export interface CommandProcess {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** How the program was called, for lines the user can copy. */
  readonly program: string
  /** Aborts at the first SIGINT or SIGTERM from now on, with its name as the reason; the second ends the process. */
  untilInterrupted(): AbortSignal
}

/** Makes a command for the table; its `run` gets the values typed as its options say. */
export function defineCommand<Options extends OptionSpecs, Operands extends OptionSpecs>(
  definition: CommandDefinition<Options, Operands>,
): Command {
  return {
    ...definition,
    details: definition.details ?? null,
    // The values were read by the very specs that give them their types.
    run: (invocation) => definition.run(invocation as never),
  }
}
