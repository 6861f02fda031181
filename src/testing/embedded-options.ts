import {
  booleanProblem,
  isRecord,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'

/** How a server ends: `smart` waits for the clients, `fast` disconnects them, `immediate` is as a crash. */
export type StopMode = 'smart' | 'fast' | 'immediate'

/** What may be chosen about an embedded server. */
export interface EmbeddedPostgresOptions {
  /**
   * A directory for the data, kept when the server stops and reused by the next start.
   * @default a temporary directory, removed when the server stops or this process dies
   */
  readonly dataDir?: string
  /**
   * The port to listen on, on 127.0.0.1 only.
   * @default a free port
   */
  readonly port?: number
  /**
   * Whether writes are forced to disk. Without it the data survives a crash of the server, not one of the machine.
   * @default true with a `dataDir`, false without
   */
  readonly fsync?: boolean
  /**
   * Further server settings by name, as in postgresql.conf.
   * @default logical replication is possible (`wal_level=logical`)
   */
  readonly settings?: Readonly<Record<string, string | number | boolean>>
  /**
   * How long a start may take, in milliseconds.
   * @default 30_000
   */
  readonly startTimeoutMs?: number
}

const OPTION_NAMES: readonly (keyof EmbeddedPostgresOptions)[] = [
  'dataDir',
  'port',
  'fsync',
  'settings',
  'startTimeoutMs',
]
const LAST_PORT = 65_535
const LONGEST_START_MS = 3_600_000

/** What is wrong with the options of an embedded server, all of it. */
export function embeddedProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    textProblem('dataDir', options['dataDir']),
    wholeNumberProblem('port', options['port'], 1, LAST_PORT),
    booleanProblem('fsync', options['fsync']),
    ...settingProblems(options['settings']),
    wholeNumberProblem('startTimeoutMs', options['startTimeoutMs'], 1, LONGEST_START_MS),
  ]
}

const SETTING_TYPES: ReadonlySet<string> = new Set(['string', 'number', 'boolean'])

function settingProblems(settings: unknown): readonly (string | null)[] {
  if (settings === undefined) return []
  if (!isRecord(settings)) return [recordProblem('settings', settings)]
  return Object.entries(settings).map(([name, value]) =>
    SETTING_TYPES.has(typeof value)
      ? null
      : `settings.${name} must be text, a number, true or false, but is ${shown(value)}`,
  )
}

const STOP_MODES: readonly StopMode[] = ['smart', 'fast', 'immediate']

/** Refuses a way to stop that does not exist. */
export function refuseUnknownMode(mode: unknown): void {
  refuseProblems('the embedded server', [oneOfProblem('the mode', mode, STOP_MODES)])
}

/** The settings of the server, by name. */
export function serverSettings(options: EmbeddedPostgresOptions): Readonly<Record<string, string>> {
  const fsync = options.fsync ?? options.dataDir !== undefined
  const durability = fsync ? {} : { fsync: 'off', full_page_writes: 'off' }
  const chosen = Object.entries(options.settings ?? {}).map(([name, value]) => [name, String(value)])
  return { wal_level: 'logical', ...durability, ...Object.fromEntries(chosen) }
}
