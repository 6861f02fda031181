import type { Command } from './command.ts'
import type { CommandEntry } from './commands.ts'
import { globalOptions } from './options.ts'
import { splitWords, type Words } from './parse.ts'

/** A command line told apart, and the commands it was told apart by. */
export interface LoadedCommands {
  readonly words: Words
  readonly commands: readonly Command[]
}

/**
 * Loads the commands that the arguments may call, and tells their words apart. Where no command is found, or an option is
 * not one of theirs, all are loaded: whether a word is an option's value, and what to suggest, is known by all of them.
 */
export async function loadCommands(
  args: readonly string[],
  entries: readonly CommandEntry[],
): Promise<LoadedCommands> {
  const called = await load(
    entries.filter(({ name }) => name.split(' ').every((word) => args.includes(word))),
  )
  const isUnderstood = findCommand(called.words, called.commands) !== null && knowsOptions(called)
  return isUnderstood ? called : load(entries)

  async function load(some: readonly CommandEntry[]): Promise<LoadedCommands> {
    const commands = await Promise.all(some.map((entry) => entry.load()))
    return { words: splitWords(args, commands), commands }
  }
}

/** The command that the words call, or null. */
export function findCommand({ positionals }: Words, commands: readonly Command[]): Command | null {
  const path = positionals.join(' ')
  return commands.find(({ name }) => path === name || path.startsWith(`${name} `)) ?? null
}

/** The names of all options that one of the commands takes. */
export function optionNames(commands: readonly Command[]): ReadonlySet<string> {
  return new Set([...Object.keys(globalOptions), ...commands.flatMap(({ options }) => Object.keys(options))])
}

function knowsOptions({ words, commands }: LoadedCommands): boolean {
  const known = optionNames(commands)
  return words.options.every(({ name }) => known.has(name))
}
