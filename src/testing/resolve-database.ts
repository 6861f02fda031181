import { isRecord, recordProblem, refuseProblems, unknownOptionProblems } from '../runtime/option-checks.ts'
import { type EmbeddedPostgresOptions, embeddedProblems } from './embedded-options.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

/** A database to work with, and what to do when done with it. */
export interface ResolvedDatabase {
  readonly url: string
  /** Where it comes from: the environment, or a server that was started for this call. */
  readonly source: 'environment' | 'embedded'
  /** Stops the server if it was started for this call; otherwise does nothing. */
  stop(): Promise<void>
}

/** What decides which database is taken. */
export interface ResolveDatabaseOptions {
  /**
   * The environment to read `DATABASE_URL` from.
   * @default process.env
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How to start the embedded server when `DATABASE_URL` is not set. */
  readonly embedded?: EmbeddedPostgresOptions
}

/** Takes the database named by `DATABASE_URL`; without one, starts an embedded PostgreSQL server. */
export async function resolveDatabase(options: ResolveDatabaseOptions = {}): Promise<ResolvedDatabase> {
  refuseProblems('resolveDatabase', resolveProblems(options))
  const url = (options.env ?? process.env)['DATABASE_URL']
  if (url) return { url, source: 'environment', stop: async () => undefined }
  const server = await startEmbeddedPostgres(options.embedded)
  return { url: server.url, source: 'embedded', stop: async () => await server.stop() }
}

function resolveProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { env, embedded } = options
  return [
    ...unknownOptionProblems(options, ['env', 'embedded']),
    env === undefined ? null : recordProblem('env', env),
    ...(embedded === undefined ? [] : embeddedProblems(embedded)),
  ]
}
