import type { OnCommitted, TransactionHooks } from '../publish/in-transaction.ts'
import type { OutboxStore } from '../store/store.ts'
import type { WakeBell } from './wake-bell.ts'

/** What an outbox adds to its transactions: what they publish last goes with COMMIT, and workers are woken after it. */
export function transactionHooks(
  bell: WakeBell,
  store: Pick<OutboxStore<unknown>, 'notifyWorkers' | 'commitWith' | 'beginWith'>,
): TransactionHooks {
  return {
    onCommitted: wakeOnCommit(bell, store),
    commitWith: (client) => store.commitWith?.(client) ?? null,
    beginWith: (client) => store.beginWith?.(client) ?? null,
    mayTell: () => bell.mayTellNow(),
  }
}

/**
 * Rings the bell after a commit. Where other processes were not told together with it, they are told on the client that has
 * just committed: it is at hand.
 */
function wakeOnCommit(bell: WakeBell, store: Pick<OutboxStore<unknown>, 'notifyWorkers'>): OnCommitted {
  return (client, toldAlready) => {
    if (toldAlready !== null) {
      bell.wakeHere()
      return toldAlready
    }
    let telling: Promise<void> | null = null
    bell.ring(() => {
      telling = store.notifyWorkers(client)
      return telling
    })
    return telling
  }
}
