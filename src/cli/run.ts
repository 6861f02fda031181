import { formatsIn } from '../runtime/formats.ts'
import type { Language } from '../runtime/language.ts'
import { suggest } from '../runtime/suggest.ts'
import type { ExitCode } from './cli-error.ts'
import type { Command, CommandProcess } from './command.ts'
import type { CommandEntry } from './commands.ts'
import { describeFailure, stackOf } from './failure.ts'
import { commandHelp, groupHelp } from './help.ts'
import { findCommand, loadCommands, optionNames } from './load-commands.ts'
import { messagesIn } from './messages/dictionaries.ts'
import type { Messages } from './messages/messages.ts'
import { chooseLanguage, resolveGlobals } from './options.ts'
import { hasOption, readValues, usageError, valueOf, type Words } from './parse.ts'
import type { Services } from './services.ts'
import type { Terminal } from './terminal.ts'

/** What a run of the program is made of. */
export interface ProgramParts {
  readonly commands: readonly CommandEntry[]
  readonly services: Services
  readonly terminal: Terminal
  readonly process: CommandProcess
}

/** The same with the commands that this run needs. */
type LoadedParts = Omit<ProgramParts, 'commands'> & { readonly commands: readonly Command[] }

/** Finds the command, reads its options, runs it. Failures are printed, never thrown. */
export async function runProgram(args: readonly string[], parts: ProgramParts): Promise<ExitCode> {
  const { words, commands } = await loadCommands(args, parts.commands)
  const language = chooseLanguage(valueOf(words, 'lang'), parts.process.env)
  const messages = await messagesIn(language)
  try {
    return await runWords(words, language, messages, { ...parts, commands })
  } catch (error) {
    const failure = describeFailure(error, messages)
    const { code, message } = failure
    if (hasOption(words, 'json')) parts.terminal.note(JSON.stringify({ error: { code, message } }))
    else parts.terminal.note(`${parts.terminal.style('bad', messages.errors.title(code))} ${message}`)
    if (hasOption(words, 'debug')) parts.terminal.note(stackOf(error))
    return failure.exitCode
  }
}

async function runWords(
  words: Words,
  language: Language,
  messages: Messages,
  parts: LoadedParts,
): Promise<ExitCode> {
  const { terminal, services, process } = parts
  const found = findCommand(words, parts.commands)
  const helpParts = { terminal, language, messages }
  if (found === null) {
    if (hasOption(words, 'help'))
      return printed(terminal, groupHelp(groupOf(words, parts), inGroup(words, parts), helpParts))
    if (words.positionals.length === 0 && words.options.length === 0) {
      terminal.note(groupHelp('', parts.commands, helpParts))
      return 2
    }
    throw unknownCommand(words, parts, messages)
  }
  if (hasOption(words, 'help')) return printed(terminal, commandHelp(found, helpParts))
  const { globals, values } = readValues(words, found, messages)
  return found.run({
    values,
    globals: resolveGlobals(globals, process.env),
    terminal,
    language,
    messages,
    formats: formatsIn(language),
    services,
    process,
  })
}

/** The first word, where it is the beginning of several commands: `dlq`. Empty for the whole program. */
function groupOf({ positionals }: Words, { commands }: LoadedParts): string {
  const first = positionals[0]
  return first !== undefined && commands.some(({ name }) => name.startsWith(`${first} `)) ? first : ''
}

function inGroup(words: Words, parts: LoadedParts): readonly Command[] {
  const group = groupOf(words, parts)
  return group === '' ? parts.commands : parts.commands.filter(({ name }) => name.startsWith(`${group} `))
}

function unknownCommand(words: Words, parts: LoadedParts, messages: Messages): Error {
  const group = groupOf(words, parts)
  const given = words.positionals.slice(0, group === '' ? 1 : 2).join(' ')
  const candidates = inGroup(words, parts).map(({ name }) => name)
  // Told first: the value of a misspelt option looks like a command.
  const strange = unknownOptions(words, parts, messages)
  if (given === group) return usageError([...strange, messages.usage.incomplete(group, candidates)], group)
  const near = suggest(given, group === '' ? firstWordsAndNames(candidates) : candidates)
  return usageError([...strange, messages.usage.unknownCommand(given, near)], group)
}

function unknownOptions(words: Words, { commands }: LoadedParts, messages: Messages): readonly string[] {
  const known = optionNames(commands)
  return words.options
    .filter(({ name }) => !known.has(name))
    .map(({ name, typed }) => {
      const near = suggest(name, [...known])
      return messages.usage.unknownOption(typed, near === null ? null : `--${near}`)
    })
}

function firstWordsAndNames(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name.split(' ')[0] as string, name]))]
}

function printed(terminal: Terminal, text: string): ExitCode {
  terminal.print(text)
  return 0
}
