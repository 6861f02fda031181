import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CommitpostError } from '../runtime/errors.ts'
import { exists } from '../runtime/file-system.ts'
import { property } from '../runtime/property.ts'
import { describeError } from '../runtime/text.ts'
import { CliError } from './cli-error.ts'
import type { Messages, WorkerMessages } from './messages/messages.ts'
import type { GlobalValues } from './options.ts'
import type { WorkerConfig } from './worker-config.ts'

/** Where the config is, and what the command line says to it. */
export interface ConfigRequest {
  readonly cwd: string
  /** As given with `--config`; undefined looks for a file of the usual names. */
  readonly path: string | undefined
  readonly globals: GlobalValues
}

/** A config that can be run, and the file it came from. */
export interface LoadedConfig {
  readonly path: string
  readonly config: WorkerConfig
}

const USUAL_NAMES = [
  'commitpost.config.js',
  'commitpost.config.mjs',
  'commitpost.config.ts',
  'commitpost.config.mts',
] as const
// What Node answers for a file in TypeScript: an ending it does not know, or syntax it cannot strip.
const TYPESCRIPT_TROUBLE: ReadonlySet<unknown> = new Set([
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING',
])

/** Loads and checks the config. @throws CliError naming the file and everything wrong with it. */
export async function loadWorkerConfig(request: ConfigRequest): Promise<LoadedConfig> {
  const path = await findConfig(request)
  const exported = await importDefault(resolve(request.cwd, path), path)
  const ignored = isFunction(exported) ? [] : ignoredOptions(request.globals)
  const { databaseUrl, schema } = request.globals
  const config: unknown = isFunction(exported)
    ? await callConfig(exported, path, { databaseUrl, schema })
    : exported
  const problems = (messages: Messages): readonly string[] => configProblems(config, ignored, messages.worker)
  if (!isConfig(config) || ignored.length > 0) {
    throw new CliError('CONFIG_INVALID', (messages) =>
      messages.errors.configInvalid(path, problems(messages)),
    )
  }
  return { path, config }
}

async function findConfig({ cwd, path }: ConfigRequest): Promise<string> {
  for (const candidate of path === undefined ? USUAL_NAMES : [path]) {
    if (await exists(resolve(cwd, candidate))) return candidate
  }
  throw new CliError('CONFIG_INVALID', ({ errors }) =>
    path === undefined ? errors.noConfig(cwd, USUAL_NAMES) : errors.configNotFound(path),
  )
}

async function importDefault(file: string, shown: string): Promise<unknown> {
  try {
    const module: unknown = await import(pathToFileURL(file).href)
    return property(module, 'default')
  } catch (cause) {
    throw failedConfig(shown, cause)
  }
}

async function callConfig(
  make: (context: unknown) => unknown,
  shown: string,
  context: object,
): Promise<unknown> {
  try {
    return await make(context)
  } catch (cause) {
    throw failedConfig(shown, cause)
  }
}

function failedConfig(shown: string, cause: unknown): CliError {
  if (/\.[mc]?ts$/.test(shown) && TYPESCRIPT_TROUBLE.has(property(cause, 'code'))) {
    const explain = (messages: Messages): string => messages.errors.configTypeScript(shown, process.version)
    return new CliError('CONFIG_INVALID', explain, { cause })
  }
  return new CliError(
    'CONFIG_INVALID',
    (messages) => messages.errors.configFailed(shown, reasonOf(cause, messages)),
    {
      cause,
    },
  )
}

/** What the library says against the config is said in the language of whoever asked. */
function reasonOf(cause: unknown, { errors }: Messages): string {
  return cause instanceof CommitpostError ? errors.library(cause) : describeError(cause)
}

/** An object was made before anybody could tell it of the command line: a worker on the wrong database is worse than none. */
function ignoredOptions({ databaseGiven, schemaGiven }: GlobalValues): readonly string[] {
  return [...(databaseGiven ? ['--database'] : []), ...(schemaGiven ? ['--schema'] : [])]
}

function isConfig(config: unknown): config is WorkerConfig {
  return hasOutbox(config) && hasSubscriptions(config)
}

function hasOutbox(config: unknown): boolean {
  return typeof property(property(config, 'outbox'), 'worker') === 'function'
}

function hasSubscriptions(config: unknown): boolean {
  const subscriptions = property(config, 'subscriptions')
  return Array.isArray(subscriptions) && subscriptions.length > 0
}

function configProblems(
  config: unknown,
  ignored: readonly string[],
  messages: WorkerMessages,
): readonly string[] {
  if (typeof config !== 'object' || config === null) return [messages.notAnObject(kindOf(config))]
  return [
    ...(hasOutbox(config) ? [] : [messages.outboxMissing]),
    ...(hasSubscriptions(config) ? [] : [messages.subscriptionsMissing]),
    ...(ignored.length === 0 ? [] : [messages.optionsIgnored(ignored)]),
  ]
}

function isFunction(value: unknown): value is (context: unknown) => unknown {
  return typeof value === 'function'
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}
