import type { Connector, ConnectorEngine, ConnectorRequest } from './connector-request.ts'

/** The settings of a connector, by name. */
type Settings = Connector['config']

const EVENTS = 'outbox_event'

/** A connector that sends each event of the outbox to Kafka, whole as it is: nothing has to be added. */
export function debeziumConnector(request: ConnectorRequest): Connector {
  const config = {
    ...sourceSettings[request.engine](request),
    'database.hostname': request.host,
    'database.port': String(request.port),
    'database.user': request.user,
    'database.password': request.password,
    'topic.prefix': request.name,
    'tasks.max': '1',
    'snapshot.mode': request.existing ? 'initial' : 'no_data',
    // Events are only ever inserted; what retention deletes is no event.
    'skipped.operations': 'u,d,t',
    'tombstones.on.delete': 'false',
    // Without them nothing is acknowledged while others write and no event comes, and the log grows.
    'heartbeat.interval.ms': '10000',
    'extended.headers.enabled': 'false',
    ...routerSettings(request),
    ...converterSettings(request),
  }
  return { name: request.name, config }
}

/** The name as PostgreSQL takes it for a slot. */
export function slotName(connectorName: string): string {
  return connectorName.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')
}

const sourceSettings: Readonly<Record<ConnectorEngine, (request: ConnectorRequest) => Settings>> = {
  postgres: ({ database, schema, name, publication }) => ({
    'connector.class': 'io.debezium.connector.postgresql.PostgresConnector',
    'database.dbname': database,
    'table.include.list': `${asPattern(schema)}.${EVENTS}`,
    'plugin.name': 'pgoutput',
    'slot.name': slotName(name),
    'publication.name': slotName(name),
    'publication.autocreate.mode': publication,
    // A partitioned table goes by its own name and not by those of its partitions; to others it is all one.
    'publish.via.partition.root': 'true',
  }),
  mysql: (request) => ({
    'connector.class': 'io.debezium.connector.mysql.MySqlConnector',
    ...binaryLogSettings(request),
  }),
  mariadb: (request) => ({
    'connector.class': 'io.debezium.connector.mariadb.MariaDbConnector',
    ...binaryLogSettings(request),
  }),
}

function binaryLogSettings({ database, name, bootstrap, serverId }: ConnectorRequest): Settings {
  return {
    'database.include.list': asPattern(database),
    'table.include.list': `${asPattern(database)}.${EVENTS}`,
    'database.server.id': String(serverId),
    'include.schema.changes': 'false',
    'schema.history.internal.kafka.bootstrap.servers': bootstrap,
    'schema.history.internal.kafka.topic': `${name}.schema-history`,
    'schema.history.internal.store.only.captured.tables.ddl': 'true',
  }
}

/** Lists of tables are lists of patterns. */
function asPattern(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/g, '\\$&')
}

/** Which columns become headers, under the names that our own Kafka transport gives them. */
const HEADERS = {
  event_id: 'eventId',
  event_type: 'eventType',
  schema_version: 'schemaVersion',
  sequence: 'sequence',
  ordering_key: 'orderingKey',
  stream: 'stream',
  aggregate_type: 'aggregateType',
  occurred_at: 'occurredAt',
  headers: 'headers',
}

function routerSettings({ topicPrefix, payload, key }: ConnectorRequest): Settings {
  const isByOrder = key === 'ordering-key'
  // Where the aggregate id is the key, it needs no header.
  const headers = isByOrder ? { ...HEADERS, aggregate_id: 'aggregateId' } : HEADERS
  const placement = Object.entries(headers).map(([column, header]) => `${column}:header:${header}`)
  const router = {
    type: 'io.debezium.transforms.outbox.EventRouter',
    'table.field.event.id': 'event_id',
    'table.field.event.key': isByOrder ? 'ordering_key' : 'aggregate_id',
    'table.field.event.type': 'event_type',
    'table.field.event.payload': 'payload',
    'table.fields.additional.placement': placement.join(','),
    'route.by.field': 'aggregate_type',
    'route.topic.replacement': `${topicPrefix}.\${routedByValue}`,
    ...(payload === 'expanded' ? expansion : {}),
  }
  const named = Object.entries(router).map(([name, value]) => [`transforms.outbox.${name}`, value])
  return { transforms: 'outbox', ...Object.fromEntries(named) }
}

/** Left alone, the router drops what is null as well. */
const expansion: Settings = {
  'table.expand.json.payload': 'true',
  'table.json.payload.null.behavior': 'optional_bytes',
}

/**
 * The connector's own, so that it does not matter what the worker has. The text of the payload is its JSON, so written as
 * it is it arrives as a JSON object, whatever is in it. The router's expansion makes a schema of each payload instead:
 * it loses empty lists, leaves a text in quotes where a list is of several types, and a payload that is a list stops it.
 */
function converterSettings({ payload }: ConnectorRequest): Settings {
  const asText = 'org.apache.kafka.connect.storage.StringConverter'
  const asJson = 'org.apache.kafka.connect.json.JsonConverter'
  return {
    'key.converter': asText,
    'header.converter': asText,
    ...(payload === 'expanded'
      ? { 'value.converter': asJson, 'value.converter.schemas.enable': 'false' }
      : { 'value.converter': asText }),
  }
}
