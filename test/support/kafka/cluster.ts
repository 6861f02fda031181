import { randomBytes } from 'node:crypto'
import { freePort } from '../../../src/testing/postgres/server.ts'
import { brokerSettings, clusterId, startNode } from './broker.ts'
import type { ServerControl } from './java-server.ts'
import type { Properties } from './settings.ts'

/** One broker of several. */
export interface ClusterBroker extends ServerControl {
  /** For clients: `127.0.0.1:<port>`, the same after each restart. */
  readonly bootstrap: string
}

/** Three brokers that replicate each other's partitions. */
export interface KafkaCluster extends AsyncDisposable {
  /** By number, from 1. The first is their controller too, and has to stay. */
  broker(id: number): ClusterBroker
  /** Of all of them. */
  readonly bootstrap: readonly string[]
}

const BROKERS = [1, 2, 3]

/**
 * A broker that is gone is missed soon, and what is led by another than it should be moves back soon. One that only stands still
 * for a while is not missed.
 */
const IMPATIENT: Properties = {
  'broker.heartbeat.interval.ms': '500',
  'broker.session.timeout.ms': '9000',
  'auto.leader.rebalance.enable': 'true',
  'leader.imbalance.check.interval.seconds': '1',
  'leader.imbalance.per.broker.percentage': '0',
  'offsets.topic.replication.factor': '3',
}

/** Starts them side by side. */
export async function startKafkaCluster(): Promise<KafkaCluster> {
  const controller = `127.0.0.1:${await freePort()}`
  const cluster = clusterId(randomBytes(16))
  const starting = BROKERS.map((id) => startBroker(id, cluster, controller))
  const started = await Promise.allSettled(starting)
  const brokers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  // The controller last: without it the others cannot say goodbye.
  const stop = async (): Promise<void> => {
    for (const broker of brokers.toReversed()) await broker.stop()
  }
  if (brokers.length < BROKERS.length) await stop()
  await Promise.all(starting)
  return {
    broker: (id) => brokers[id - 1] as ClusterBroker,
    bootstrap: brokers.map(({ bootstrap }) => bootstrap),
    [Symbol.asyncDispose]: stop,
  }
}

async function startBroker(id: number, cluster: string, controller: string): Promise<ClusterBroker> {
  const bootstrap = `127.0.0.1:${await freePort()}`
  const both = { ...(await brokerSettings(bootstrap, controller)), ...IMPATIENT }
  const alone = {
    'process.roles': 'broker',
    'node.id': String(id),
    listeners: `PLAINTEXT://${bootstrap}`,
  }
  const settings = id === 1 ? both : { ...both, ...alone }
  const control = await startNode({ bootstrap, settings, cluster, formatArguments: [], jvm: 'small' })
  return Object.assign(control, { bootstrap })
}
