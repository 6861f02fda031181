import type { OnCommitted } from '../publish/in-transaction.ts'
import type { OutboxStore } from '../store/store.ts'
import type { WakeBell } from './wake-bell.ts'

/** Rings the bell after a commit. Other processes are told on the client that has just committed: it is at hand. */
export function wakeOnCommit(
  bell: WakeBell,
  store: Pick<OutboxStore<unknown>, 'notifyWorkers'>,
): OnCommitted {
  return (client) => {
    let telling: Promise<void> | null = null
    bell.ring(() => {
      telling = store.notifyWorkers(client)
      return telling
    })
    return telling
  }
}
