/** The databases that Debezium reads an outbox from. */
export type ConnectorEngine = 'postgres' | 'mysql' | 'mariadb'

/** What a connector is to do, with all defaults filled in. */
export interface ConnectorRequest {
  readonly engine: ConnectorEngine
  /** What Kafka Connect calls it; the names of its slot, its publication and its own topics come from it. */
  readonly name: string
  /** The database as Kafka Connect reaches it. */
  readonly host: string
  readonly port: number
  readonly user: string
  /** In clear, or a reference that Kafka Connect resolves: `${env:NAME}`. */
  readonly password: string
  readonly database: string
  /** The schema of Commitpost's tables. Only PostgreSQL has one. */
  readonly schema: string
  /** An event goes to the topic `<topicPrefix>.<aggregate type>`. */
  readonly topicPrefix: string
  /** Which column becomes the key of a record: what has none in it has no key. */
  readonly key: 'aggregate-id' | 'ordering-key'
  /** Whether the payload is handed on as it is, in JSON, or taken apart into fields with a schema by the router. */
  readonly payload: 'json' | 'expanded'
  /** Whether events that are in the table when it first starts are sent as well. */
  readonly existing: boolean
  /** `filtered`: it makes the publication itself, as the owner of the table; `disabled`: somebody has made it. */
  readonly publication: 'filtered' | 'disabled'
  /** For MySQL and MariaDB: where it keeps what it knows of the tables, and its number among the replicas. */
  readonly bootstrap: string
  readonly serverId: number
}

/** What Kafka Connect takes: `POST /connectors` the whole, `PUT /connectors/<name>/config` the config. */
export interface Connector {
  readonly name: string
  readonly config: Readonly<Record<string, string>>
}
