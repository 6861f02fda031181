import pg from 'pg'
import { debeziumConnector } from '../../../src/debezium/connector.ts'
import { migrateUp } from '../../../src/store/postgres/index.ts'
import { connectorsAt } from '../kafka/connectors.ts'
import { type Account, CONNECTOR, type Places, TOPIC_PREFIX } from './places.ts'

/** The schema that the command line takes if it is told none. */
const SCHEMA = 'commitpost'

/** Brings the tables up to date and registers the connector; `host` and `port` are the database's as Connect sees it. */
export async function prepare(places: Places, account: Account, host: string, port: number): Promise<void> {
  const pool = new pg.Pool({ connectionString: places.databaseUrl })
  try {
    await migrateUp(pool, { schema: SCHEMA })
  } finally {
    await pool.end()
  }
  const { name, config } = debeziumConnector({
    engine: 'postgres',
    name: CONNECTOR,
    host,
    port,
    user: account.user,
    password: '${env:COMMITPOST_DATABASE_PASSWORD}',
    database: account.database,
    schema: SCHEMA,
    topicPrefix: TOPIC_PREFIX,
    payload: 'json',
    key: 'aggregate-id',
    existing: true,
    publication: 'filtered',
    bootstrap: places.bootstrap,
    serverId: 1,
  })
  await connectorsAt(places.connectUrl).register(name, config)
}
