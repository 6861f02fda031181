import type { Language } from '../runtime/language.ts'
import { displayWidth, pad } from '../runtime/width.ts'
import type { Command } from './command.ts'
import type { Messages } from './messages/messages.ts'
import type { OptionSpec } from './option-spec.ts'
import { globalOptions } from './options.ts'
import type { Terminal } from './terminal.ts'

/** What a help text is made of. */
export interface HelpParts {
  readonly terminal: Pick<Terminal, 'style'>
  readonly language: Language
  readonly messages: Messages
}

/** The help of one command. */
export function commandHelp(command: Command, parts: HelpParts): string {
  const { messages, language } = parts
  const operands = Object.entries(command.operands).map(([name, spec]) => `<${spec.placeholder ?? name}>`)
  const usage = ['commitpost', command.name, ...operands, '[options]'].join(' ')
  return [
    `${title(messages.help.usage, parts)} ${usage}`,
    '',
    command.summary[language],
    ...(command.details === null ? [] : ['', command.details[language]]),
    ...section(messages.help.options, optionRows(command.options, language), parts),
    ...section(messages.help.commonOptions, optionRows({ ...globalOptions }, language), parts),
  ].join('\n')
}

/** The help of a group of commands, or of all: `commitpost dlq --help`, `commitpost --help`. */
export function groupHelp(group: string, commands: readonly Command[], parts: HelpParts): string {
  const { messages, language } = parts
  const rows = commands.map((command) => [signature(command), command.summary[language]] as const)
  return [
    `${title(messages.help.usage, parts)} commitpost ${group === '' ? '' : `${group} `}<${messages.help.command}> [options]`,
    ...(group === '' ? ['', messages.help.about] : []),
    ...section(messages.help.commands, rows, parts),
    ...section(messages.help.commonOptions, optionRows({ ...globalOptions }, language), parts),
    '',
    messages.help.exitCodes,
  ].join('\n')
}

function signature(command: Command): string {
  const operands = Object.entries(command.operands).map(([name, spec]) => `<${spec.placeholder ?? name}>`)
  return [command.name, ...operands].join(' ')
}

function optionRows(
  specs: Readonly<Record<string, OptionSpec<unknown>>>,
  language: Language,
): readonly (readonly [string, string])[] {
  return Object.entries(specs).map(([name, { placeholder, summary }]) => {
    const short = name === 'help' ? '-h, ' : ''
    return [`${short}--${name}${placeholder === null ? '' : ` ${placeholder}`}`, summary[language]]
  })
}

function section(
  heading: string,
  rows: readonly (readonly [string, string])[],
  parts: HelpParts,
): readonly string[] {
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(([left]) => displayWidth(left)))
  return ['', title(heading, parts), ...rows.map(([left, right]) => `  ${pad(left, width)}  ${right}`)]
}

function title(text: string, { terminal }: HelpParts): string {
  return terminal.style('title', text)
}
