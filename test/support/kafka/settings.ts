import { readFile } from 'node:fs/promises'
import { infraFile } from './repository.ts'

/** Settings of a server by name, as in a .properties file. */
export type Properties = Readonly<Record<string, string>>

/** The settings in a file of infra/ that containers read as their environment: `KAFKA_NODE_ID=1` is `node.id`. */
export async function sharedSettings(file: string, prefix: string): Promise<Properties> {
  const lines = (await readFile(infraFile(file), 'utf8')).split('\n')
  const settings = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'))
  return Object.fromEntries(settings.map((line) => settingOf(line, prefix)))
}

function settingOf(line: string, prefix: string): readonly [string, string] {
  const equals = line.indexOf('=')
  const name = line.slice(0, equals)
  const bare = name.startsWith(prefix) ? name.slice(prefix.length) : name
  return [bare.toLowerCase().replaceAll('_', '.'), line.slice(equals + 1)]
}

/** As Java reads it. No value of ours has a line break or a backslash. */
export function propertiesText(properties: Properties): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}
