import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/testing/index.ts'
import { freePort, isFree } from '../../../src/testing/postgres/server.ts'
import { startKafka } from '../kafka/broker.ts'
import { startConnect } from '../kafka/connect.ts'
import { type Account, databaseUrl, type Places, PORTS, readAccount } from './places.ts'
import { prepare } from './prepare.ts'

/** PostgreSQL, Kafka and Kafka Connect with the connector of ivm, as processes of this machine. */
export interface Stack {
  readonly places: Places
  /** Ends them all and removes what they kept. */
  stop(): Promise<void>
}

/** Starts them on the ports of infra/compose.yaml, or on others where those are taken. */
export async function startStack(): Promise<Stack> {
  const running: { stop(): Promise<void> }[] = []
  const stop = async (): Promise<void> => {
    for (const server of running.toReversed()) await server.stop()
  }
  try {
    const account = await readAccount()
    const postgres = await startEmbeddedPostgres({ port: await portFor(PORTS.postgres) })
    running.push(postgres)
    await createDatabase(postgres, account)
    const kafka = await startKafka({ port: await portFor(PORTS.kafka) })
    running.push(kafka)
    const connect = await startConnect({
      bootstrap: kafka.bootstrap,
      port: await portFor(PORTS.connect),
      group: 'ivm-connect',
      env: { COMMITPOST_DATABASE_PASSWORD: account.password },
    })
    running.push(connect)
    const places = {
      databaseUrl: databaseUrl(account, postgres.port),
      bootstrap: kafka.bootstrap,
      connectUrl: connect.url,
    }
    await prepare(places, account, '127.0.0.1', postgres.port)
    return { places, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function portFor(preferred: number): Promise<number> {
  return (await isFree(preferred)) ? preferred : await freePort()
}

/** With the rights that Debezium needs: to replicate, and to publish a table that it owns. */
async function createDatabase(
  server: EmbeddedPostgres,
  { user, password, database }: Account,
): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    const name = client.escapeIdentifier(user)
    await client.query(`create role ${name} login replication password ${client.escapeLiteral(password)}`)
    await client.query(`create database ${client.escapeIdentifier(database)} owner ${name}`)
    await askForPassword(server.dataDir, user)
    await client.query('select pg_reload_conf()')
  } finally {
    await client.end()
  }
}

/** As the server of compose.yaml does; the embedded one trusts whoever is on this machine. */
async function askForPassword(dataDir: string, user: string): Promise<void> {
  const file = join(dataDir, 'pg_hba.conf')
  const rules = await readFile(file, 'utf8')
  await writeFile(file, `host all ${user} 127.0.0.1/32 scram-sha-256\n${rules}`)
}
