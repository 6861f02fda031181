// pg-transactional-outbox as the benchmarks run it: the part of its interface that is used, and its settings.
import { importPeer } from './peers.ts'
import type { ListenerPlace } from './protocol.ts'

/** The part of pg-transactional-outbox's interface that is used. */
interface TransactionalOutbox {
  initializeReplicationMessageListener(
    config: object,
    handler: { handle(message: TransactionalOutboxMessage): Promise<void> },
    logger: object,
    strategies: { readonly concurrencyStrategy: object },
  ): [shutdown: () => Promise<void>]
  getDisabledLogger(): object
  createReplicationMutexConcurrencyController(): object
  createReplicationSemaphoreConcurrencyController(maxParallel: number): object
  createReplicationFullConcurrencyController(): object
}

/** A message as its handlers get it. */
export interface TransactionalOutboxMessage {
  readonly id: string
  readonly aggregateId: string
  readonly payload: unknown
}

/** Starts its logical replication listener. Returns the way to stop it, which ends when every transaction has ended. */
export async function startListener(
  place: ListenerPlace,
  handle: (message: TransactionalOutboxMessage) => Promise<void>,
): Promise<() => Promise<void>> {
  const peer = await importPeer<TransactionalOutbox>('pg-transactional-outbox')
  const [shutdown] = peer.initializeReplicationMessageListener(
    configOf(place),
    { handle },
    peer.getDisabledLogger(),
    { concurrencyStrategy: controllerOf(peer, place) },
  )
  return shutdown
}

/** Its README's settings for an outbox, no cleaning up meanwhile, and no message that times out while it waits for its turn. */
function configOf({
  url,
  schema,
  table,
  publication,
  slot,
  connections,
  mostSeconds,
}: ListenerPlace): object {
  return {
    outboxOrInbox: 'outbox',
    dbListenerConfig: { connectionString: url },
    dbHandlerConfig: { connectionString: url, max: connections },
    settings: {
      dbSchema: schema,
      dbTable: table,
      dbPublication: publication,
      dbReplicationSlot: slot,
      enableMaxAttemptsProtection: false,
      enablePoisonousMessageProtection: false,
      messageCleanupIntervalInMs: 0,
      messageProcessingTimeoutInMs: 2 * mostSeconds * 1_000,
    },
  }
}

function controllerOf(peer: TransactionalOutbox, { concurrency, connections }: ListenerPlace): object {
  switch (concurrency) {
    case 'mutex':
      return peer.createReplicationMutexConcurrencyController()
    case 'semaphore':
      return peer.createReplicationSemaphoreConcurrencyController(connections)
    case 'full':
      return peer.createReplicationFullConcurrencyController()
  }
}
