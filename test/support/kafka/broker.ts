import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Kafka, logLevel } from 'kafkajs'
import { freePort } from '../../../src/testing/postgres/server.ts'
import type { Certificate } from './certificate.ts'
import { ensureJars } from './jars.ts'
import { type JavaProgram, JavaServer, type Jvm, type ServerControl } from './java-server.ts'
import { type Properties, propertiesText, sharedSettings } from './settings.ts'

/** A running Kafka of one node. It ends with this process, however that dies, unless it is stopped before. */
export interface KafkaServer extends ServerControl {
  /** For clients: `127.0.0.1:<port>`. */
  readonly bootstrap: string
  /** For clients that say who they are, where there is a user. */
  readonly saslBootstrap: string
  /** For clients of TLS, where there is a certificate. */
  readonly tlsBootstrap: string
}

/** What may be chosen about a broker. */
export interface KafkaOptions {
  /**
   * The port for clients, on 127.0.0.1.
   * @default a free port
   */
  readonly port?: number
  /**
   * What Java runs it with.
   * @default 'small'
   */
  readonly jvm?: Jvm
  /**
   * Somebody who may come in by a second port, `saslBootstrap`, with this password.
   * @default nobody
   */
  readonly user?: { readonly name: string; readonly password: string }
  /**
   * By what a third port, `tlsBootstrap`, shows who it is.
   * @default there is none
   */
  readonly certificate?: Certificate
}

/** Starts a broker in about five seconds, once the jars are fetched. Topics come into being when they are written to. */
export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const bootstrap = `127.0.0.1:${options.port ?? (await freePort())}`
  const saslBootstrap = `127.0.0.1:${await freePort()}`
  const tlsBootstrap = `127.0.0.1:${await freePort()}`
  const settings = await brokerSettings(bootstrap, `127.0.0.1:${await freePort()}`)
  const withSasl = { ...settings, ...saslSettings(settings, saslBootstrap, options.user) }
  const control = await startNode({
    bootstrap,
    settings: { ...withSasl, ...tlsSettings(withSasl, tlsBootstrap, options.certificate) },
    cluster: clusterId(randomBytes(16)),
    formatArguments: scramArguments(options.user),
    jvm: options.jvm ?? 'small',
  })
  return Object.assign(control, { bootstrap, saslBootstrap, tlsBootstrap })
}

/** One process of Kafka, with a directory of its own. */
export interface KafkaNode {
  /** Where it answers clients once it is ready. */
  readonly bootstrap: string
  /** All of them but the directory for its data. */
  readonly settings: Properties
  readonly cluster: string
  /** What else its storage is made with. */
  readonly formatArguments: readonly string[]
  readonly jvm: Jvm
}

/** Starts one, and waits until it answers clients. */
export async function startNode(node: KafkaNode): Promise<ServerControl> {
  const { libs } = await ensureJars()
  const server = await JavaServer.create('Kafka')
  const file = join(server.directory, 'server.properties')
  const java = (main: string, args: readonly string[]): JavaProgram => ({
    classpath: join(libs, '*'),
    main,
    args,
    heapMb: { small: 320, full: 1_024 },
    jvm: node.jvm,
  })
  const start = (): Promise<void> => server.start(java('kafka.Kafka', [file]), () => answers(node.bootstrap))
  try {
    await writeFile(file, propertiesText({ ...node.settings, 'log.dirs': join(server.directory, 'data') }))
    const format = ['format', '-t', node.cluster, '-c', file, ...node.formatArguments]
    await server.run(java('kafka.tools.StorageTool', format))
    await start()
  } catch (error) {
    await server.remove('SIGKILL')
    throw error
  }
  return server.control(start)
}

/** A name for the cluster. It must not begin with a dash, or the program that formats the storage takes it for an option. */
export function clusterId(bytes: Uint8Array): string {
  const id = Buffer.from(bytes).toString('base64url')
  return id.startsWith('-') ? `A${id.slice(1)}` : id
}

/** Of a node that is broker and controller, for clients at `bootstrap`. */
export async function brokerSettings(bootstrap: string, controller: string): Promise<Properties> {
  return {
    ...(await sharedSettings('kafka.env', 'KAFKA_')),
    listeners: `PLAINTEXT://${bootstrap},CONTROLLER://${controller}`,
    'controller.quorum.voters': `1@${controller}`,
  }
}

function saslSettings(
  { listeners, 'listener.security.protocol.map': protocols }: Properties,
  address: string,
  user: KafkaOptions['user'],
): Properties {
  if (user === undefined) return {}
  const jaas = 'org.apache.kafka.common.security'
  return {
    listeners: `${listeners},SASL://${address}`,
    'listener.security.protocol.map': `${protocols},SASL:SASL_PLAINTEXT`,
    'listener.name.sasl.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'listener.name.sasl.plain.sasl.jaas.config': `${jaas}.plain.PlainLoginModule required user_${user.name}="${user.password}";`,
    'listener.name.sasl.scram-sha-256.sasl.jaas.config': `${jaas}.scram.ScramLoginModule required;`,
    'listener.name.sasl.scram-sha-512.sasl.jaas.config': `${jaas}.scram.ScramLoginModule required;`,
  }
}

function tlsSettings(
  { listeners, 'listener.security.protocol.map': protocols }: Properties,
  address: string,
  certificate: KafkaOptions['certificate'],
): Properties {
  if (certificate === undefined) return {}
  return {
    listeners: `${listeners},TLS://${address}`,
    'listener.security.protocol.map': `${protocols},TLS:SSL`,
    'listener.name.tls.ssl.keystore.type': 'PKCS12',
    'listener.name.tls.ssl.keystore.location': certificate.keystore,
    'listener.name.tls.ssl.keystore.password': certificate.password,
  }
}

function scramArguments(user: KafkaOptions['user']): readonly string[] {
  if (user === undefined) return []
  return ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
    '--add-scram',
    `${mechanism}=[name=${user.name},password=${user.password}]`,
  ])
}

/** The broker opens its port to clients when the controller has let it in, so an answer means that it can be used. */
async function answers(bootstrap: string): Promise<boolean> {
  const client = new Kafka({
    clientId: 'launcher',
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  })
  const admin = client.admin()
  try {
    await admin.connect()
    return (await admin.describeCluster()).brokers.length > 0
  } catch {
    return false
  } finally {
    await admin.disconnect()
  }
}
