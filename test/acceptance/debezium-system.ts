import { runCli } from '../cli/support.ts'
import { type KafkaServer, startKafka } from '../support/kafka/broker.ts'
import { type ConnectServer, startConnect } from '../support/kafka/connect.ts'
import type { ConnectorConfig } from '../support/kafka/connectors.ts'
import type { KafkaRecord, Records } from '../support/kafka/records.ts'
import { comes } from '../support/patience.ts'
import { type Ivm, openIvm } from './ivm-system.ts'

export { CONNECTOR } from '../support/infra/places.ts'

/** The ivm system with a real Kafka, Kafka Connect and Debezium behind its outbox. */
export interface DebeziumSystem extends Captured, AsyncDisposable {
  readonly ivm: Ivm
  readonly kafka: KafkaServer
}

/** Starts the servers; no connector is registered yet. */
export async function openDebezium(): Promise<DebeziumSystem> {
  const kafka = await startKafka()
  try {
    const connect = await startConnect({ bootstrap: kafka.bootstrap })
    const ivm = await openIvm()
    const close = async (): Promise<void> => {
      await connect.stop()
      await kafka.stop()
      await ivm[Symbol.asyncDispose]()
    }
    return { ivm, system: ivm, kafka, connect, [Symbol.asyncDispose]: close }
  } catch (error) {
    await kafka.stop()
    throw error
  }
}

/** What `commitpost debezium config` prints for the system's schema. */
export async function printedConfig(
  { schema, url }: Pick<Ivm, 'schema' | 'url'>,
  name: string,
  options: readonly string[] = ['--topic-prefix', 'ivm.events'],
): Promise<ConnectorConfig> {
  const { stdout, stderr } = await runCli([
    'debezium',
    'config',
    '--json',
    '--database',
    url,
    '--schema',
    schema,
    '--name',
    name,
    ...options,
  ])
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as { config: ConnectorConfig }).config
}

/** Waits for so many records whose keys begin like this. */
export async function arrived(records: Records, key: string, count: number): Promise<readonly KafkaRecord[]> {
  const found = (): readonly KafkaRecord[] => records.all.filter((record) => record.key?.startsWith(key))
  await comes(`${count} records of ${key}`, () => found().length >= count)
  return found()
}

/** Where a connector runs, and the system whose outbox it reads. */
export interface Captured {
  readonly system: Pick<Ivm, 'value' | 'rows' | 'pool'>
  readonly connect: ConnectServer
}

/** Registers a connector and waits until it reads the log: from here on, all that is committed is sent. */
export async function register({ system, connect }: Captured, config: ConnectorConfig): Promise<void> {
  const slot = config['slot.name']
  await connect.register(config['topic.prefix'] ?? '', config)
  const active = 'select count(*) from pg_replication_slots where slot_name = $1 and active'
  await comes('the slot is read', async () => Number(await system.value(active, [slot])) === 1)
}

/** Removes a connector with what it has made in the database. */
export async function unregister({ system, connect }: Captured, config: ConnectorConfig): Promise<void> {
  await connect.unregister(config['topic.prefix'] ?? '')
  const slot = config['slot.name']
  const held = 'select count(*) from pg_replication_slots where slot_name = $1 and active'
  await comes('the slot is free', async () => Number(await system.value(held, [slot])) === 0)
  await system.rows(
    'select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1',
    [slot],
  )
  await system.pool.query(`drop publication if exists ${config['publication.name']}`)
}
