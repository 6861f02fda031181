import { property } from '../runtime/property.ts'
import { CliError } from './cli-error.ts'
import type { Invocation } from './command.ts'
import { loadWorkerConfig } from './load-worker-config.ts'

/** The types that the catalogue of a worker's config knows, as they stand in the table. */
export async function loadKnownTypes(
  path: string,
  { process, globals }: Pick<Invocation<unknown>, 'process' | 'globals'>,
): Promise<readonly string[]> {
  // Its connections are not used, so it does not matter that an object cannot be told of the command line's.
  const { config } = await loadWorkerConfig({
    cwd: process.cwd,
    path,
    globals: { ...globals, databaseGiven: false, schemaGiven: false },
  })
  await config.close?.()
  // What createOutbox made has its catalogue; a config needs no more of it than `worker`.
  const events = property(property(config.outbox, 'events'), 'events')
  if (!Array.isArray(events)) {
    throw new CliError('CONFIG_INVALID', ({ errors, worker }) =>
      errors.configInvalid(path, [worker.outboxMissing]),
    )
  }
  return (events as unknown[]).map((event) => String(property(event, 'storedAs')))
}
