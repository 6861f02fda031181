// The logical replication listener of pg-transactional-outbox with a handler that only counts.
import { setTimeout as sleep } from 'node:timers/promises'
import { importPeer } from '../support/peers.ts'
import { runProgram } from '../support/program.ts'
import type { ListenerReport, ListenerTask } from '../support/protocol.ts'

/** The part of pg-transactional-outbox's interface that is used. */
interface TransactionalOutbox {
  initializeReplicationMessageListener(
    config: object,
    handler: { handle(message: { readonly id: string }): Promise<void> },
    logger: object,
    strategies: { readonly concurrencyStrategy: object },
  ): [shutdown: () => Promise<void>]
  getDisabledLogger(): object
  createReplicationMutexConcurrencyController(): object
  createReplicationSemaphoreConcurrencyController(maxParallel: number): object
  createReplicationFullConcurrencyController(): object
}

await runProgram<ListenerTask>(async (task) => {
  const peer = await importPeer<TransactionalOutbox>('pg-transactional-outbox')
  return await listen(peer, task)
})
// Where the time was up, messages that still wait for a connection would keep the process until they time out.
process.exit()

async function listen(peer: TransactionalOutbox, task: ListenerTask): Promise<ListenerReport> {
  // By their ids: a message whose transaction failed comes again.
  const handled = new Set<string>()
  let firstMs = 0
  let reachEnd: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    reachEnd = resolve
  })
  const handle = async ({ id }: { readonly id: string }): Promise<void> => {
    if (handled.size === 0) firstMs = performance.now()
    handled.add(id)
    if (handled.size === task.events) reachEnd()
  }
  const cpuBefore = process.cpuUsage()
  const [shutdown] = peer.initializeReplicationMessageListener(
    configOf(task),
    { handle },
    peer.getDisabledLogger(),
    { concurrencyStrategy: controllerOf(peer, task) },
  )
  await Promise.race([all, sleep(task.mostSeconds * 1_000)])
  const timed = handled.size
  const seconds = (performance.now() - firstMs) / 1_000
  // Ends when every transaction has ended.
  await shutdown()
  const { user, system } = process.cpuUsage(cpuBefore)
  return { timed, seconds, handled: handled.size, cpuMicros: user + system }
}

/** Its README's settings for an outbox, no cleaning up meanwhile, and no message that times out while it waits for its turn. */
function configOf({ url, schema, table, publication, slot, connections, mostSeconds }: ListenerTask): object {
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

function controllerOf(peer: TransactionalOutbox, { concurrency, connections }: ListenerTask): object {
  switch (concurrency) {
    case 'mutex':
      return peer.createReplicationMutexConcurrencyController()
    case 'semaphore':
      return peer.createReplicationSemaphoreConcurrencyController(connections)
    case 'full':
      return peer.createReplicationFullConcurrencyController()
  }
}
