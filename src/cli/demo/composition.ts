import { randomBytes } from 'node:crypto'
import { quoteSchema } from '../../store/postgres/identifiers.ts'
import { migrateUp } from '../../store/postgres/migrate.ts'
import { migrationStatus } from '../../store/postgres/migration-status.ts'
import { postgresStore } from '../../store/postgres/postgres-store.ts'
import { resolveDatabase } from '../../testing/resolve-database.ts'
import { CliError } from '../cli-error.ts'
import { DEFAULT_SCHEMA } from '../options.ts'
import { openPool } from '../postgres-driver.ts'
import { withoutPassword } from '../text/redact.ts'
import type { DemoDatabase, DemoTarget } from './demo-database.ts'

/** Business transactions, handlers of the ledger and the demo's own questions. */
const CONNECTIONS = 30

/** Starts or opens the database of the demo and creates Commitpost's tables in a schema that nothing else uses. */
export async function openDemoDatabase(target: DemoTarget): Promise<DemoDatabase> {
  const server = await resolveDatabase({ env: { DATABASE_URL: target.url ?? undefined } })
  try {
    return await openOn(server, target)
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function openOn(
  server: Awaited<ReturnType<typeof resolveDatabase>>,
  target: DemoTarget,
): Promise<DemoDatabase> {
  const embedded = server.source === 'embedded'
  const { pool, address } = await openPool({ url: server.url, connections: CONNECTIONS })
  const close = async (): Promise<void> => {
    await pool.end()
    await server.stop()
  }
  try {
    const schema = target.schema ?? (embedded ? DEFAULT_SCHEMA : newSchemaName())
    const { state } = await migrationStatus(pool, { schema })
    if (state !== 'missing') {
      throw new CliError('DEMO_SCHEMA_EXISTS', (messages) => messages.errors.demoSchemaExists(schema))
    }
    await migrateUp(pool, { schema })
    return {
      embedded,
      address,
      shownUrl: withoutPassword(server.url),
      schema,
      quotedSchema: quoteSchema(schema),
      pool,
      store: postgresStore({ pool, schema }),
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await pool.end()
    throw error
  }
}

/** Another one for each run: what a run before it left is not counted as its own. */
function newSchemaName(): string {
  return `${DEFAULT_SCHEMA}_demo_${randomBytes(3).toString('hex')}`
}
