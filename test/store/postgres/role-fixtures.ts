import pg from 'pg'
import { migrateUp } from '../../../src/store/postgres/migrate.ts'
import { rolesSql } from '../../../src/store/postgres/roles.ts'
import { createOutboxDatabase, type OutboxDatabase } from './fixtures.ts'

export type Job = 'publisher' | 'worker' | 'operator' | 'viewer'

const JOBS: readonly Job[] = ['publisher', 'worker', 'operator', 'viewer']
const PASSWORD = 'secret'

/** A migrated schema with the four roles, and a real login in each of them. */
export interface RolesDatabase extends OutboxDatabase {
  /** Connected as a login that has this one role. */
  readonly as: Readonly<Record<Job, pg.Pool>>
  /** The name of that login. */
  login(job: Job): string
}

export async function createRolesDatabase(): Promise<RolesDatabase> {
  const db = await createOutboxDatabase()
  await db.pool.query(await rolesSql({ schema: db.schema, prefix: db.schema }))
  const login = (job: Job): string => `${db.schema}_${job}_login`
  for (const job of JOBS) {
    await db.pool.query(`create role ${login(job)} login password '${PASSWORD}' in role ${db.schema}_${job}`)
  }
  const pools = JOBS.map((job) => [job, poolAs(db.url, login(job))] as const)
  const drop = async (): Promise<void> => {
    for (const [, pool] of pools) await pool.end()
    const roles = JOBS.flatMap((job) => [login(job), `${db.schema}_${job}`]).join(', ')
    await db.pool.query(`drop owned by ${roles}; drop role ${roles}`)
    await db.drop()
  }
  const as = Object.fromEntries(pools) as Record<Job, pg.Pool>
  return { ...db, as, login, drop, [Symbol.asyncDispose]: drop }
}

/** Another schema of the same database, that everybody may use and that has no roles. Returns its name. */
export async function makeSchemaWithoutRoles({ pool, schema }: RolesDatabase): Promise<string> {
  const bare = `${schema}_bare`
  await migrateUp(pool, { schema: bare })
  await pool.query(`grant usage on schema ${bare} to public`)
  return bare
}

function poolAs(databaseUrl: string, user: string): pg.Pool {
  const url = new URL(databaseUrl)
  url.username = user
  url.password = PASSWORD
  // What a connection says goes before what its role has set, which is what tests of roles are about.
  const options = url.searchParams.get('options') ?? ''
  url.searchParams.set('options', options.replace(/ -c idle_in_transaction_session_timeout=\d+/, ''))
  const pool = new pg.Pool({ connectionString: url.href, max: 4 })
  pool.on('error', () => undefined)
  return pool
}
