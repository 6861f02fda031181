import type { ExitCode } from './cli-error.ts'
import type { Invocation } from './command.ts'
import { usageError } from './parse.ts'
import type { Database } from './services.ts'

type DatabaseInvocation = Pick<Invocation<unknown>, 'globals' | 'messages' | 'services'>

/** Runs the work on the database that the options or the environment name, and closes it again. */
export async function withDatabase(
  { globals, messages, services }: DatabaseInvocation,
  work: (database: Database) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { databaseUrl, schema } = globals
  if (databaseUrl === undefined) throw usageError([messages.usage.noDatabase], '')
  await using database = await services.openDatabase({ url: databaseUrl, schema })
  return await work(database)
}

/** The same, for commands that need the tables: what is missing is said before anything is read. */
export function withReadyDatabase(
  invocation: DatabaseInvocation,
  work: (database: Database) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withDatabase(invocation, async (database) => {
    await database.assertReady()
    return work(database)
  })
}
