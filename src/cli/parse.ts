import { parseArgs } from 'node:util'
import { suggest } from '../runtime/suggest.ts'
import { CliError } from './cli-error.ts'
import type { Command } from './command.ts'
import type { Messages } from './messages/messages.ts'
import type { OptionSpec } from './option-spec.ts'
import { type GlobalReadings, globalOptions } from './options.ts'

/** The words of a command line, told apart but not yet understood. */
export interface Words {
  /** What is no option: the command's name and its operands. */
  readonly positionals: readonly string[]
  /** The options in the order they were given. Value undefined for one without. */
  readonly options: readonly GivenOption[]
}

/** One option as it was given. */
export interface GivenOption {
  readonly name: string
  /** With its dashes, as typed. */
  readonly typed: string
  readonly value: string | undefined
  /** True for `--name=value`: then the value was certainly meant as one. */
  readonly inline: boolean
}

/** Everything a command line says, read and checked. */
export interface ParsedValues {
  readonly globals: GlobalReadings
  readonly values: Readonly<Record<string, unknown>>
}

/** Tells options and other words apart. Knows the options of all commands, as it does not know the command yet. */
export function splitWords(args: readonly string[], commands: readonly Command[]): Words {
  const known = Object.assign({}, globalOptions, ...commands.map(({ options }) => options))
  const types = Object.entries<OptionSpec<unknown>>(known).map(([name, { placeholder }]) => [
    name,
    { type: placeholder === null ? ('boolean' as const) : ('string' as const) },
  ])
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...(Object.fromEntries(types) as Record<string, { type: 'boolean' | 'string' }>),
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const positionals = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
  const given = tokens.flatMap((token) =>
    token.kind === 'option'
      ? [{ name: token.name, typed: token.rawName, value: token.value, inline: token.inlineValue === true }]
      : [],
  )
  return withHabits({ positionals, options: given })
}

/** What people type elsewhere: `help dlq` is `dlq --help`, `--version` is `version`. */
function withHabits({ positionals, options }: Words): Words {
  const [first, ...rest] = positionals
  if (first === 'help') {
    const help = { name: 'help', typed: '--help', value: undefined, inline: false }
    return { positionals: rest, options: [...options, help] }
  }
  if (first !== undefined || !options.some(({ name }) => name === 'version')) return { positionals, options }
  return { positionals: ['version'], options: options.filter(({ name }) => name !== 'version') }
}

/** Whether an option is there at all, whatever its value. */
export function hasOption(words: Words, name: string): boolean {
  return words.options.some((option) => option.name === name)
}

/** The value given last, or undefined. */
export function valueOf(words: Words, name: string): string | undefined {
  return words.options.findLast((option) => option.name === name)?.value
}

/**
 * Reads the options and operands of a command.
 * @throws CliError of code USAGE that lists everything wrong with them.
 */
export function readValues(words: Words, command: Command, messages: Messages): ParsedValues {
  const specs = { ...globalOptions, ...command.options }
  const malformed = new Map<string, string>()
  for (const option of words.options) {
    const problem = optionProblem(option, specs, messages)
    if (problem !== null) malformed.set(option.name, problem)
  }
  const problems = [...malformed.values()]
  const read = (spec: OptionSpec<unknown>, given: string | undefined, shown: string): unknown => {
    const reading = spec.read(given, shown, messages)
    if (reading.ok) return reading.value
    problems.push(reading.problem)
    return undefined
  }
  const options = mapEntries(specs, (name, spec) =>
    malformed.has(name) ? undefined : read(spec, givenText(words, name, spec), `--${name}`),
  )
  const operandTexts = words.positionals.slice(command.name.split(' ').length)
  const operands = mapEntries(command.operands, (name, spec, index) =>
    read(spec, operandTexts[index], `<${spec.placeholder ?? name}>`),
  )
  const surplus = operandTexts.slice(Object.keys(command.operands).length)
  problems.push(...surplus.map((text) => messages.usage.surplus(text)))
  if (problems.length > 0) throw usageError(problems, command.name)
  // Each value was made by the spec that gives it its type.
  return { globals: options as unknown as GlobalReadings, values: { ...options, ...operands } }
}

/** A complaint about how the program was called, with the way to the help. */
export function usageError(problems: readonly string[], commandName: string): CliError {
  return new CliError('USAGE', (messages) => {
    const [only] = problems
    const text = problems.length === 1 ? only : `\n${problems.map((problem) => `- ${problem}`).join('\n')}`
    return `${text}\n${messages.usage.seeHelp(commandName)}`
  })
}

function optionProblem(
  option: GivenOption,
  specs: Readonly<Record<string, OptionSpec<unknown>>>,
  messages: Messages,
): string | null {
  const spec = Object.hasOwn(specs, option.name) ? specs[option.name] : undefined
  if (spec === undefined) {
    const near = suggest(option.name, Object.keys(specs))
    return messages.usage.unknownOption(option.typed, near === null ? null : `--${near}`)
  }
  if (spec.placeholder === null) {
    return option.value === undefined ? null : messages.usage.takesNoValue(option.typed)
  }
  const value = option.value ?? ''
  // "--note --json" is a forgotten value; a value that begins with a dash is written "--note=-5".
  const isForgotten = value.trim() === '' || (!option.inline && /^--?[a-z]/i.test(value))
  return isForgotten ? messages.usage.needsValue(`--${option.name}`, spec.placeholder) : null
}

function givenText(words: Words, name: string, spec: OptionSpec<unknown>): string | undefined {
  if (spec.placeholder === null) return hasOption(words, name) ? '' : undefined
  return valueOf(words, name)
}

function mapEntries(
  specs: Readonly<Record<string, OptionSpec<unknown>>>,
  map: (name: string, spec: OptionSpec<unknown>, index: number) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec], index) => [name, map(name, spec, index)]),
  )
}
