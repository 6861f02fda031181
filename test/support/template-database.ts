import pg from 'pg'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'

/** What the schema of a template is called: as long as those of its copies, so that no text of a function changes its length. */
const TEMPLATE_SCHEMA = 't_000000000000'

/**
 * Makes a database with the tables of this version in it, to be copied for each test: that takes the server a fifth of the
 * time that making and dropping the tables takes. Returns its name.
 */
export async function makeTemplate(serverUrl: string): Promise<string> {
  const name = `commitpost_template_${process.pid}`
  await asAdministrator(serverUrl, async (client) => {
    await client.query(`drop database if exists ${name}`) // of a run that was killed
    await client.query(`create database ${name}`)
  })
  const pool = new pg.Pool({ connectionString: urlOf(serverUrl, name) })
  try {
    await migrateUp(pool, { schema: TEMPLATE_SCHEMA })
  } finally {
    await pool.end()
  }
  return name
}

/** Copies a template and divides the tables of the copy by time: to do that for each test takes as long again as to make them. */
export async function makePartitionedTemplate(serverUrl: string, template: string): Promise<string> {
  const name = `${template}_partitioned`
  await asAdministrator(serverUrl, async (client) => {
    await client.query(`drop database if exists ${name}`)
    await client.query(copySql(template, name))
  })
  const pool = new pg.Pool({ connectionString: urlOf(serverUrl, name) })
  try {
    await partitionTables(pool, { schema: TEMPLATE_SCHEMA })
  } finally {
    await pool.end()
  }
  return name
}

/** Removes one. */
export async function dropTemplate(serverUrl: string, name: string): Promise<void> {
  await asAdministrator(serverUrl, (client) => client.query(`drop database if exists ${name} with (force)`))
}

/** Copies the template's files: to write all of them to the log, as is usual, takes five times as long. */
export function copySql(template: string, name: string): string {
  return `create database ${name} template ${template} strategy file_copy`
}

/**
 * Gives the schema of a copy its own name. Everything in a schema knows it by its number, but for the texts of functions,
 * which the migrations have written the name into, and for the publication, which has a name by that of the schema. A report
 * is due ten minutes after the tables were made.
 */
export function renameSql(schema: string): string {
  return `
    begin;
    alter schema ${TEMPLATE_SCHEMA} rename to ${schema};
    update pg_proc set prosrc = replace(prosrc, '${TEMPLATE_SCHEMA}', '${schema}')
     where pronamespace = '${schema}'::regnamespace and strpos(prosrc, '${TEMPLATE_SCHEMA}') > 0;
    update pg_publication set pubname = ${schema}.outbox_publication();
    update ${schema}.outbox_monitor set report_at = clock_timestamp();
    commit`
}

/** The address of another database of the same server. */
export function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${database}`
  return url.href
}

async function asAdministrator<Result>(
  serverUrl: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(serverUrl)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
