import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConnectorConfig } from '../support/kafka/connectors.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { type KafkaRecord, type Records, readTopics } from '../support/kafka/records.ts'
import { bePatient, comes } from '../support/patience.ts'
import {
  arrived,
  CONNECTOR,
  type DebeziumSystem,
  openDebezium,
  printedConfig,
  register,
  unregister,
} from './debezium-system.ts'
import { ingest, payloadOf, product, slice } from './ivm-system.ts'

bePatient()

const RAW_DATA = 'ivm.events.raw_data'
const SLICE = 'ivm.events.slice'
const CHANGESET = 'ivm.events.changeset'

describe.skipIf(!kafkaAvailable())('the outbox of ivm through Debezium and Kafka', () => {
  let system: DebeziumSystem
  let config: ConnectorConfig
  let records: Records

  beforeAll(async () => {
    system = await openDebezium()
    config = await printedConfig(system.ivm, CONNECTOR)
    await register(system, config)
    records = await readTopics(system.kafka.bootstrap, [RAW_DATA, SLICE, CHANGESET])
  })

  afterAll(async () => {
    await records?.[Symbol.asyncDispose]()
    if (config !== undefined) await unregister(system, config)
    await system?.[Symbol.asyncDispose]()
  })

  test('I4 I7 the printed connector registers as it is, runs, and captures the outbox table only', async () => {
    expect(await system.ivm.value('show wal_level')).toBe('logical')
    expect(await system.connect.status(CONNECTOR)).toEqual({
      connector: 'RUNNING',
      tasks: ['RUNNING'],
      trace: '',
    })
    const published = 'select schemaname, tablename from pg_publication_tables where pubname = $1'
    expect(await system.ivm.rows(published, [config['publication.name']])).toEqual([
      { schemaname: system.ivm.schema, tablename: 'outbox_event' },
    ])
  })

  test('I4 the PostgresConnector knows every setting that is printed for it, and finds nothing wrong', async () => {
    const judged = await system.connect.validate('PostgresConnector', config)
    expect(judged).toEqual({ unknown: [], problems: {} })
  })

  test('I4 the MySqlConnector knows every setting that is printed for it, and misses but the server', async () => {
    const nowhere = { schema: system.ivm.schema, url: 'mysql://app@127.0.0.1:1/shop' }
    for (const options of [[], ['--payload', 'expanded', '--existing', '--key', 'ordering-key']]) {
      const printed = await printedConfig(nowhere, CONNECTOR, options)
      const { unknown, problems } = await system.connect.validate('MySqlConnector', printed)
      expect(unknown).toEqual([])
      expect(Object.keys(problems)).toEqual(['database.hostname'])
    }
    const printed = await printedConfig(nowhere, CONNECTOR)
    const misspelt = { ...printed, 'database.port': 'any', 'snapshot.mode': 'sometimes' }
    const { problems } = await system.connect.validate('MySqlConnector', misspelt)
    expect(Object.keys(problems)).toEqual(expect.arrayContaining(['database.port', 'snapshot.mode']))
  })

  test('I4 I5 I7 an ingest arrives: topic by aggregate type, key, headers, and the payload as the value', async () => {
    const eventId = await ingest(system.ivm, product)
    const [record] = await arrived(records, 'tenant-1:product-123', 1)
    expect(record?.topic).toBe(RAW_DATA)
    expect(record?.key).toBe('tenant-1:product-123')
    const [written] = await system.ivm.rows<{ occurred_at: Date }>(
      'select occurred_at from outbox_event where event_id = $1',
      [eventId],
    )
    const { occurredAt = '', ...headers } = record?.headers ?? {}
    expect(headers).toEqual({
      id: eventId,
      eventId,
      eventType: 'RawDataIngested',
      schemaVersion: '1',
      stream: 'ivm.events.raw_data',
      aggregateType: 'raw_data',
      headers: '{}',
    })
    expect(new Date(occurredAt)).toEqual(written?.occurred_at)
    expect(JSON.parse(record?.value ?? '')).toEqual(payloadOf(product))
  })

  test('I5 each aggregate type has its topic', async () => {
    const payload = { ...slice, tenantId: 'tenant-2', entityKey: 'p' }
    await system.ivm.publish('SliceCreated', { aggregateId: 'tenant-2:p:CORE', payload })
    await system.ivm.publish('ChangesetCreated', { aggregateId: 'changeset:1', payload: {} })
    const [record] = await arrived(records, 'tenant-2:p:CORE', 1)
    expect(record?.topic).toBe(SLICE)
    expect(record?.headers['eventType']).toBe('SliceCreated')
    expect(JSON.parse(record?.value ?? '')).toEqual(payload)
    expect(await arrived(records, 'changeset:1', 1)).toMatchObject([
      { topic: CHANGESET, headers: { eventType: 'ChangesetCreated' } },
    ])
  })

  test('I4 the payload arrives whole whatever is in it, and so do the headers of the event', async () => {
    const payload = `{"none": null, "empty": [], "mixed": [1, 2.5, "x", {"a": null}], "big": 12345678901234567890, "한글": "값"}`
    const add = `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, sequence, payload, headers)
                 values ('ivm', 'Odd', 'raw_data', $1, 1, $2::jsonb, $3)`
    const traced = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
    await system.ivm.pool.query(add, ['odd:1', payload, traced])
    await system.ivm.pool.query(add, ['odd:2', '[1, "a list"]', {}])
    const [first, second] = await arrived(records, 'odd:', 2).then((all) =>
      all.toSorted((one, other) => (one.key ?? '').localeCompare(other.key ?? '')),
    )
    const stored = await system.ivm.value<string>(
      "select payload::text from outbox_event where aggregate_id = 'odd:1'",
    )
    expect(first?.value).toBe(stored)
    expect(first?.headers['sequence']).toBe('1')
    expect(JSON.parse(first?.headers['headers'] ?? '')).toEqual(traced)
    expect(second?.value).toBe('[1, "a list"]')
  })

  test('I4 expanded, the payload is an object with a schema of its own; what cannot be expanded is a text', async () => {
    const options = ['--payload', 'expanded', '--topic-prefix', 'expanded']
    const expanded = await printedConfig(system.ivm, 'expanded', options)
    await using expandedRecords = await readTopics(system.kafka.bootstrap, ['expanded.raw_data'])
    await register(system, expanded)
    const add = `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
                 values ('ivm', 'Expanded', 'raw_data', $1, $2::jsonb)`
    await system.ivm.pool.query(add, ['expanded:1', '{"a": {"b": [1, 2]}, "none": null, "empty": []}'])
    await system.ivm.pool.query(add, ['expanded:2', '{"mixed": ["a", 1]}'])
    await comes('both', () => expandedRecords.all.length >= 2)
    const valueOf = (wanted: string): unknown =>
      JSON.parse(expandedRecords.all.find(({ key }) => key === wanted)?.value ?? '')
    expect(valueOf('expanded:1')).toEqual({ a: { b: [1, 2] }, none: null })
    expect(valueOf('expanded:2')).toBe('{"mixed": ["a", 1]}')
    await unregister(system, expanded)
  })

  test('I7 a fault of the application rolls back, and nothing of it is published', async () => {
    const fault = (): Promise<void> => Promise.reject(new Error('the application failed'))
    const faulty = { ...product, tenantId: 'faulty' }
    await expect(ingest(system.ivm, faulty, fault)).rejects.toThrow('the application failed')
    await ingest(system.ivm, { ...faulty, version: 2 })
    const seen = await arrived(records, 'faulty:', 1)
    expect(seen.map(({ value }) => JSON.parse(value ?? '').version)).toEqual([2])
    expect(await system.ivm.count('raw_data', "tenant_id = 'faulty'")).toBe(1)
  })

  test('I4 the order of each aggregate is kept over 10,000 events', async () => {
    const aggregates = 50
    const versions = 200
    const perTransaction = 10
    for (let from = 1; from <= versions; from += perTransaction) {
      const inputs = Array.from({ length: aggregates * perTransaction }, (_, index) => {
        const entityKey = `entity-${index % aggregates}`
        const version = from + Math.floor(index / aggregates)
        const payload = payloadOf({ ...product, tenantId: 'ordered', entityKey, version })
        return { type: 'RawDataIngested' as const, aggregateId: `ordered:${entityKey}`, payload }
      })
      await system.ivm.outbox.inTransaction(system.ivm.pool, (tx) => system.ivm.outbox.publishAll(tx, inputs))
    }
    const count = aggregates * versions
    await comes('every event has arrived', () => firstOfEach(records, 'ordered:').length >= count)
    const seen = firstOfEach(records, 'ordered:')
    expect(seen).toHaveLength(count)
    const inOrder = Array.from({ length: versions }, (_, index) => index + 1)
    for (let index = 0; index < aggregates; index += 1) {
      const ofKey = seen.filter(({ key }) => key === `ordered:entity-${index}`)
      expect(new Set(ofKey.map(({ partition }) => partition)).size).toBe(1)
      expect(ofKey.map(({ value }) => JSON.parse(value ?? '').version)).toEqual(inOrder)
    }
  })

  test('I6 I7 Connect killed in mid-stream and restarted loses nothing; what it repeats is known by its id', async () => {
    const count = 1_500
    const ids = new Set<string>()
    const publishing = (async () => {
      for (let version = 1; version <= count; version += 1) {
        const id = await ingest(system.ivm, { ...product, tenantId: 'killed', version })
        if (id !== null) ids.add(id)
      }
    })()
    await arrived(records, 'killed:', 200)
    await system.connect.kill()
    const atKill = records.all.filter(({ key }) => key?.startsWith('killed:')).length
    expect(atKill).toBeLessThan(count)
    await publishing
    await system.connect.restart()
    await system.connect.running(CONNECTOR)
    const seen = (): readonly KafkaRecord[] => records.all.filter(({ key }) => key?.startsWith('killed:'))
    await comes('every event has arrived', () => firstOfEach(records, 'killed:').length === count)
    expect(new Set(seen().map(({ headers }) => headers['eventId']))).toEqual(ids)
    // An effect that is applied once per event id, in the order of arrival.
    const applied = firstOfEach(records, 'killed:')
    expect(applied.map(({ value }) => JSON.parse(value ?? '').version)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    )
    process.stderr.write(`killed after ${atKill} of ${count} records; ${seen().length - count} came twice\n`)
  })

  test('I7 events from before the connector are sent too where that is asked for', async () => {
    const late = await printedConfig(system.ivm, 'late', ['--existing', '--topic-prefix', 'late.events'])
    await using lateRecords = await readTopics(system.kafka.bootstrap, ['late.events.slice'])
    await register(system, late)
    await comes('the slice from before', () => lateRecords.all.length >= 1)
    expect(lateRecords.all.map(({ key }) => key)).toEqual(['tenant-2:p:CORE'])
    await unregister(system, late)
  })

  test('L9 the key follows the ordering key where that is asked for, and the aggregate id is a header', async () => {
    const keyed = await printedConfig(system.ivm, 'keyed', [
      '--key',
      'ordering-key',
      '--topic-prefix',
      'keyed',
    ])
    await using keyedRecords = await readTopics(system.kafka.bootstrap, ['keyed.TRANSACTION'])
    await register(system, keyed)
    await system.ivm.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, ordering_key, payload)
       select 'ledger', 'LEDGER_POSTED', 'TRANSACTION', 't-' || n, 'acc-1', '{}' from generate_series(1, 20) n`,
    )
    await comes('all of the account', () => keyedRecords.all.length >= 20)
    expect(new Set(keyedRecords.all.map(({ key, partition }) => `${key} in ${partition}`)).size).toBe(1)
    expect(keyedRecords.all.map(({ key, headers }) => [key, headers['aggregateId']])).toEqual(
      Array.from({ length: 20 }, (_, n) => ['acc-1', `t-${n + 1}`]),
    )
    await unregister(system, keyed)
  })

  test('I4 a table in partitions goes by its own name', async () => {
    const { ivm } = system
    const schema = `${ivm.schema}_parts`
    await ivm.pool.query(`
      create schema ${schema};
      create table ${schema}.outbox_event (like outbox_event including defaults) partition by range (event_id);
      create table ${schema}.outbox_event_first partition of ${schema}.outbox_event default`)
    const parts = await printedConfig(ivm, 'parts', ['--schema', schema, '--topic-prefix', 'parts'])
    await using partRecords = await readTopics(system.kafka.bootstrap, ['parts.raw_data'])
    await register(system, parts)
    await ivm.pool.query(
      `insert into ${schema}.outbox_event (id, stream, event_type, aggregate_type, aggregate_id, payload)
       values (1, 'ivm', 'RawDataIngested', 'raw_data', 'in a partition', '{}')`,
    )
    await comes('the event of the partition', () => partRecords.all.length >= 1)
    expect(partRecords.all.map(({ key }) => key)).toEqual(['in a partition'])
    await unregister(system, parts)
    await ivm.pool.query(`drop schema ${schema} cascade`)
  })
})

/** The records of each event at its first place: a Connect that stood still for long begins anew, and repeats. */
function firstOfEach(records: Records, keyPrefix: string): readonly KafkaRecord[] {
  const ofThem = records.all.filter(({ key }) => key?.startsWith(keyPrefix))
  return [...new Map(ofThem.map((record) => [record.headers['eventId'], record])).values()]
}
