import type { InboxStore } from '../store/inbox-store.ts'

/** Which effect is to happen once. */
export interface OnceKey {
  readonly subscription: string
  readonly eventId: string
}

/** What came of it: the work's result, or that an earlier transaction had committed it already. */
export type OnceResult<Result> = { readonly first: true; readonly result: Result } | { readonly first: false }

/**
 * Runs the work in the given transaction unless one that committed before did so for the same key. The record and the
 * work commit together or not at all; a second caller waits for the first one's transaction to end.
 */
export async function runOnce<Tx, Result>(
  store: Pick<InboxStore<Tx>, 'recordOnce'>,
  tx: Tx,
  key: OnceKey,
  work: () => Promise<Result>,
): Promise<OnceResult<Result>> {
  const isFirst = await store.recordOnce(tx, key.subscription, key.eventId)
  return isFirst ? { first: true, result: await work() } : { first: false }
}
