import type { Catalogue } from '../event/catalogue.ts'
import { createMasking, type Masking } from '../event/masking.ts'
import { property } from '../runtime/property.ts'
import { CliError } from './cli-error.ts'
import type { Invocation } from './command.ts'
import { loadWorkerConfig } from './load-worker-config.ts'
import { type OptionSpec, text } from './option-spec.ts'
import type { KnownCatalogue } from './services.ts'

/** Where the catalogue is taken from: the config file of the worker. */
export const catalogueOption: OptionSpec<string | undefined> = text('FILE', {
  en: 'The config file of the worker, for its catalogue',
  ko: '카탈로그를 읽을 워커 설정 파일입니다',
})

/** What a worker's config says about events, and nothing else of it; undefined where no file is named. */
export async function loadCatalogue(
  path: string | undefined,
  { process, globals }: Pick<Invocation<unknown>, 'process' | 'globals'>,
): Promise<KnownCatalogue | undefined> {
  if (path === undefined) return undefined
  // Its connections are not used, so it does not matter that an object cannot be told of the command line's.
  const { config } = await loadWorkerConfig({
    cwd: process.cwd,
    path,
    globals: { ...globals, databaseGiven: false, schemaGiven: false },
  })
  await config.close?.()
  const catalogue = property(config.outbox, 'events')
  if (isCatalogue(catalogue)) {
    const masking = property(config.outbox, 'masking')
    return { catalogue, masking: isMasking(masking) ? masking : createMasking(catalogue) }
  }
  throw new CliError('CONFIG_INVALID', ({ errors, care }) => errors.configInvalid(path, [care.noCatalogue]))
}

function isCatalogue(value: unknown): value is Catalogue {
  return ['find', 'findStored', 'prepare', 'read'].every(
    (name) => typeof property(value, name) === 'function',
  )
}

function isMasking(value: unknown): value is Masking {
  return ['keeps', 'hidden', 'payload', 'text'].every((name) => typeof property(value, name) === 'function')
}
