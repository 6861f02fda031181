import type { Catalogue } from '../event/catalogue.ts'
import { property } from '../runtime/property.ts'
import { CliError } from './cli-error.ts'
import type { Invocation } from './command.ts'
import { loadWorkerConfig } from './load-worker-config.ts'
import { type OptionSpec, text } from './option-spec.ts'

/** Where the catalogue is taken from: the config file of the worker. */
export const catalogueOption: OptionSpec<string | undefined> = text('FILE', {
  en: 'The config file of the worker, for its catalogue',
  ko: '카탈로그를 읽을 워커 설정 파일입니다',
})

/** The catalogue of a worker's config, and nothing else of it; undefined where no file is named. */
export async function loadCatalogue(
  path: string | undefined,
  { process, globals }: Pick<Invocation<unknown>, 'process' | 'globals'>,
): Promise<Catalogue | undefined> {
  if (path === undefined) return undefined
  // Its connections are not used, so it does not matter that an object cannot be told of the command line's.
  const { config } = await loadWorkerConfig({
    cwd: process.cwd,
    path,
    globals: { ...globals, databaseGiven: false, schemaGiven: false },
  })
  await config.close?.()
  const catalogue = property(config.outbox, 'events')
  if (isCatalogue(catalogue)) return catalogue
  throw new CliError('CONFIG_INVALID', ({ errors, care }) => errors.configInvalid(path, [care.noCatalogue]))
}

function isCatalogue(value: unknown): value is Catalogue {
  return ['findStored', 'prepare', 'read'].every((name) => typeof property(value, name) === 'function')
}
