import { execFile } from 'node:child_process'
import { chown, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import { startOwnPostgres } from './own-postgres.ts'

const execute = promisify(execFile)

/** Its own name, so that commits wait for it and not for whoever reads a log; and that of the slot by which it follows. */
const SLOT = 'standby'
/** What belongs to the running primary alone. Slots do not travel: a standby has those that it synchronises itself. */
const LEFT_BEHIND = ['postmaster.pid', 'postmaster.opts']

/**
 * Starts a standby of a running server, from a copy of its data: it follows the log, and commits wait for it, so that it
 * has whatever anybody was told is there. The copy goes with the primary's own directory.
 */
export async function startStandby(
  primary: EmbeddedPostgres,
  settings: Readonly<Record<string, string>>,
): Promise<EmbeddedPostgres> {
  const dataDir = `${primary.dataDir}-standby`
  const client = new pg.Client(primary.url)
  await client.connect()
  try {
    await client.query('select pg_create_physical_replication_slot($1, true)', [SLOT])
    await copyData(client, primary.dataDir, dataDir)
    const standby = await startOwnPostgres({
      dataDir,
      fsync: false,
      settings: {
        primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres dbname=postgres application_name=${SLOT}`,
        primary_slot_name: SLOT,
        hot_standby_feedback: 'on',
        ...settings,
      },
    })
    await client.query(`alter system set synchronous_standby_names = '${SLOT}'`)
    await client.query(`alter system set synchronized_standby_slots = '${SLOT}'`)
    await client.query('select pg_reload_conf()')
    return standby
  } finally {
    await client.end()
  }
}

/** The standby is the primary from now on. It waits for no other. */
export async function promote(standby: EmbeddedPostgres): Promise<void> {
  const client = new pg.Client(standby.url)
  await client.connect()
  try {
    await client.query('select pg_promote()')
  } finally {
    await client.end()
  }
}

async function copyData(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query("select pg_backup_start('standby', true)")
  await execute('cp', ['-a', from, to])
  const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
  for (const name of LEFT_BEHIND) await rm(join(to, name), { force: true })
  const slots = join(to, 'pg_replslot')
  for (const name of await readdir(slots)) await rm(join(slots, name), { recursive: true })
  const { uid, gid } = await stat(from)
  for (const [name, text = ''] of [['backup_label', rows[0]?.labelfile], ['standby.signal']] as const) {
    await writeFile(join(to, name), text)
    await chown(join(to, name), uid, gid)
  }
}
