import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../../src/testing/postgres/server.ts'
import { type Connectors, connectorsAt } from './connectors.ts'
import { ensureJars, type Jars } from './jars.ts'
import { JavaServer, type Jvm, type ServerControl } from './java-server.ts'
import { propertiesText, sharedSettings } from './settings.ts'

/** A running Kafka Connect of one worker, with the connectors of Debezium. It ends with this process, however that dies. */
export interface ConnectServer extends ServerControl, Connectors {
  /** Of its REST interface. */
  readonly url: string
}

/** What may be chosen about Kafka Connect. */
export interface ConnectOptions {
  /** The broker that it writes to and keeps its state in. */
  readonly bootstrap: string
  /**
   * The port of its REST interface, on 127.0.0.1.
   * @default a free port
   */
  readonly port?: number
  /**
   * What Java runs it with.
   * @default 'small'
   */
  readonly jvm?: Jvm
  /**
   * Workers of one group share their connectors, which they keep in topics of the group.
   * @default a group of its own
   */
  readonly group?: string
  /**
   * The directory of its connectors.
   * @default 'plugins', of PostgreSQL and MySQL
   */
  readonly connectors?: Exclude<keyof Jars, 'libs'>
  /** What `${env:NAME}` in a connector's configuration stands for. */
  readonly env?: Readonly<Record<string, string>>
}

/** Starts Kafka Connect in distributed mode and waits until it takes connectors. */
export async function startConnect(options: ConnectOptions): Promise<ConnectServer> {
  const jars = await ensureJars()
  const server = await JavaServer.create('Kafka Connect')
  const url = `http://127.0.0.1:${options.port ?? (await freePort())}`
  const file = join(server.directory, 'worker.properties')
  const connectors = connectorsAt(url)
  const program = {
    classpath: join(jars.libs, '*'),
    main: 'org.apache.kafka.connect.cli.ConnectDistributed',
    args: [file],
    heapMb: { small: 384, full: 2_048 },
    jvm: options.jvm ?? 'small',
    env: options.env ?? {},
  }
  const start = (): Promise<void> => server.start(program, connectors.answer)
  try {
    const group = options.group ?? `connect-${randomBytes(6).toString('hex')}`
    const settings = {
      ...(await sharedSettings('connect.env', 'CONNECT_')),
      'group.id': group,
      'config.storage.topic': `${group}-configs`,
      'offset.storage.topic': `${group}-offsets`,
      'status.storage.topic': `${group}-status`,
      'bootstrap.servers': options.bootstrap,
      listeners: url,
      'plugin.path': jars[options.connectors ?? 'plugins'],
    }
    await writeFile(file, propertiesText(settings))
    await start()
  } catch (error) {
    await server.remove('SIGKILL')
    throw error
  }
  return Object.assign(server.control(start), connectors, { url })
}
