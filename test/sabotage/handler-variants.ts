import type pg from 'pg'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { runOnce } from '../../src/inbox/once.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { DONE } from '../store/contract/helpers.ts'
import type { Actor } from './actor.ts'
import type { Trial } from './trial.ts'
import type { Variant } from './variant.ts'

const asTransaction = (client: Pick<pg.Client | pg.Pool, 'query'>): Transaction => ({
  query: (text, params = []) => (client as pg.Client).query(text, [...params]),
})

/** A handler whose effect is a row, written in a transaction of its own; it vanishes before the commit if told to. */
async function writeEffect(
  trial: Trial,
  worker: Actor,
  delivery: ClaimedDelivery,
  {
    mark,
    vanishes,
  }: {
    /** Marks the event as handled and writes the effect if that was not done before. */
    readonly mark: (
      inside: Transaction,
      outside: Transaction,
      effect: () => Promise<unknown>,
    ) => Promise<void>
    readonly vanishes: boolean
  },
): Promise<void> {
  const run = worker.begin(delivery)
  const client = await trial.h.connect(`handler of ${worker.id}`)
  await client.query('begin')
  const effect = (): Promise<unknown> =>
    client.query('insert into effect values ($1)', [delivery.event.eventId])
  await mark(asTransaction(client), asTransaction(trial.h.db.pool), effect)
  if (vanishes) {
    await client.query('rollback')
    await trial.kill(worker.id)
    return
  }
  await client.query('commit')
  // Done is what has had its effect, whatever the handler believes.
  if ((await trial.count('select count(*) from effect')) > 0) run.done()
}

export const handlerVariants: readonly Variant[] = [
  {
    name: 'the inbox is written in another transaction than the effect',
    order: 'none',
    caught: ['lost'],
    async play(trial) {
      const { pool, schema } = trial.h.db
      await pool.query('create table effect (event_id uuid)')
      const store = postgresStore({ pool, schema })
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      const first = await w1.claimOne()
      const key = { subscription: 'sub', eventId: first.event.eventId }
      const mark = async (inside: Transaction, outside: Transaction, effect: () => Promise<unknown>) => {
        await runOnce(store, trial.broken ? outside : inside, key, effect)
      }
      await writeEffect(trial, w1, first, { mark, vanishes: true })
      await w2.store.recover([trial.sub.id])
      const second = await w2.claimSuspect()
      if (second === null) return
      await writeEffect(trial, w2, second, { mark, vanishes: false })
      await w2.settle(second, DONE)
    },
  },
  {
    name: 'a delivery is completed in another transaction than the effect',
    order: 'none',
    caught: ['lost'],
    async play(trial) {
      const { pool, schema } = trial.h.db
      await pool.query('create table effect (event_id uuid)')
      const store = postgresStore({ pool, schema })
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      const marking =
        (delivery: ClaimedDelivery) =>
        async (inside: Transaction, outside: Transaction, effect: () => Promise<unknown>): Promise<void> => {
          await store.completeInTransaction(trial.broken ? outside : inside, delivery)
          await effect()
        }
      const first = await w1.claimOne()
      await writeEffect(trial, w1, first, { mark: marking(first), vanishes: true })
      await w2.store.recover([trial.sub.id])
      const second = await w2.claimSuspect()
      if (second === null) return
      await writeEffect(trial, w2, second, { mark: marking(second), vanishes: false })
    },
  },
]
