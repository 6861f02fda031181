import { createOutbox, type Transaction, UnknownOutcomeError } from '../../src/index.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { sqlState } from '../../src/runtime/sql-state.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Identity } from '../chaos/checker/entry.ts'
import { withoutRegistrationGuard } from '../hazards/support.ts'
import { SeamClient } from '../seams/seam-client.ts'
import { asOperation, SeamPool } from '../seams/seam-pool.ts'
import { untilActive } from '../store/contract/helpers.ts'
import { eventually } from '../support/program.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { identityOf } from './actor.ts'
import { events } from './events.ts'
import { SUBSCRIPTION, type Trial } from './trial.ts'
import type { Variant } from './variant.ts'

function outboxOf({ h }: Trial) {
  const { pool, schema } = h.db
  return createOutbox({ store: postgresStore({ pool, schema }), events, notify: false })
}

const toInput = ({ eventId, key }: Identity) => ({ eventId, aggregateId: key, payload: { total: 1 } })

/** Knows which pauses were begun. */
class WatchedClock extends ManualClock {
  readonly #pauses: number[] = []

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.#pauses.push(ms)
    return super.sleep(ms, signal)
  }

  /** Whether somebody began to sleep about so long. */
  hasSlept(ms: number): boolean {
    return this.#pauses.some((pause) => Math.abs(pause - ms) <= ms / 4)
  }
}

/** Publishes and commits; told to retry, it does so in a new transaction. */
async function commitPatiently(
  trial: Trial,
  client: Awaited<ReturnType<Trial['h']['connect']>>,
  event: Identity,
) {
  try {
    await trial.insert(client, event)
    await client.query('commit')
  } catch (error) {
    if (sqlState(error) !== '40001') throw error
    await client.query('rollback')
    await trial.insert(client, event)
  }
}

export const publishVariants: readonly Variant[] = [
  {
    name: 'an event is published beside the transaction, and not in it',
    order: 'none',
    caught: ['phantom'],
    async play(trial) {
      await trial.subscribe()
      const outbox = outboxOf(trial)
      const event = trial.event('a')
      trial.journal.begun([event])
      const client = await trial.h.connect('business')
      await client.query('begin')
      const inside: Transaction = { query: (text, params = []) => client.query(text, [...params]) }
      // A handle that says it is in a transaction, while its statements go to any connection of the pool.
      const beside = {
        query: (text: string, params: readonly unknown[] = []) => trial.h.db.pool.query(text, [...params]),
        getTransactionStatus: () => 'T',
      }
      await outbox.publish(trial.broken ? beside : inside, 'OrderPlaced', toInput(event))
      await client.query('rollback')
      await trial.actor('w').drain()
    },
  },
  {
    name: 'a lost answer to COMMIT is taken for a failure, and the event published under a new id',
    order: 'none',
    caught: ['phantom'],
    async play(trial) {
      await trial.subscribe()
      const outbox = outboxOf(trial)
      const { url } = trial.h.db
      const pool = new SeamPool(sturdyPool({ Client: SeamClient, connectionString: url, max: 1 }))
      const publish = (event: Identity): Promise<unknown> =>
        asOperation('publish', () =>
          outbox.inTransaction(pool, (tx) =>
            outbox.publish(tx, 'OrderPlaced', { ...toInput(event), onDuplicate: 'ignore' }),
          ),
        )
      const event = trial.event('a')
      const publication = trial.journal.begun([event])
      publication.committing()
      void pool.trap('publish: commit', 'outcome-unknown', async () => {})
      const failure = await publish(event).catch((error: unknown) => error)
      if (!(failure instanceof UnknownOutcomeError)) throw new Error('the answer was not lost')
      if (trial.broken) publication.concluded('rolledBack')
      const again = trial.broken ? trial.event('a') : event
      const retried = trial.broken ? trial.journal.begun([again]) : publication
      retried.committing()
      await publish(again)
      retried.concluded('committed')
      await pool.end()
      await trial.actor('w').drain()
    },
  },
  {
    name: 'fan-out lets publishers with an old snapshot pass',
    order: 'none',
    caught: ['lost', 'undelivered'],
    async play(trial) {
      if (trial.broken) await withoutRegistrationGuard(trial.h)
      const worker = trial.actor('w')
      const reader = await trial.h.connect('reader')
      await reader.query('begin isolation level repeatable read')
      await reader.query('select count(*) from outbox_subscription')
      await trial.register(worker)
      await untilActive(worker.store)
      const event = trial.event('a')
      const publication = trial.journal.begun([event])
      publication.committing()
      await commitPatiently(trial, reader, event)
      publication.concluded('committed')
      await worker.drain()
    },
  },
  {
    name: 'a registration does not wait for publishers that have not seen it',
    order: 'none',
    caught: ['lost', 'undelivered'],
    async play(trial) {
      trial.rewrite(/pg_snapshot_xmin\(pg_current_snapshot\(\)\) > s\.barrier/, 'true')
      const worker = trial.actor('w')
      const late = await trial.h.connect('late')
      const event = trial.event('a')
      const publication = trial.journal.begun([event])
      await late.query('begin')
      await trial.insert(late, event)
      await trial.register(worker)
      await worker.store.advanceJoining()
      await worker.store.advanceJoining()
      publication.committing()
      await late.query('commit')
      publication.concluded('committed')
      await untilActive(worker.store)
      await worker.drain()
    },
  },
  {
    name: 'workers wait for a NOTIFY and do not look by themselves',
    order: 'none',
    caught: ['stuck'],
    async play(trial) {
      await trial.subscribe()
      const clock = new WatchedClock()
      const { pool, schema } = trial.h.db
      const outbox = createOutbox({ store: postgresStore({ pool, schema }), events, notify: false, clock })
      let handled = 0
      const pauseMs = trial.broken ? 600_000 : 1_500
      const worker = outbox.worker(
        [
          outbox.subscription(SUBSCRIPTION, {
            on: {
              '*': (event, ctx) => {
                const { attempt } = ctx
                trial.journal.handled(identityOf(event), { worker: 'w', attempt, sequence: null })
                handled += 1
              },
            },
            maxAttempts: 3,
            pollMs: pauseMs,
            pollMinMs: pauseMs,
          }),
        ],
        { workerId: 'w', listen: false, housekeepingMs: 30_000, leaseMs: 3_600_000 },
      )
      await worker.start()
      await eventually('it has looked once, found nothing, and waits', () => clock.hasSlept(pauseMs))
      await trial.publish('a')
      await clock.advance(2_000)
      if (!trial.broken) await eventually('it is handled', () => handled === 1)
      await worker.stop()
    },
  },
]
