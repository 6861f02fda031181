import { createDeadLetters } from '../../src/dead-letter/dead-letters.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { DONE, dead } from '../store/contract/helpers.ts'
import type { Variant } from './variant.ts'

export const claimVariants: readonly Variant[] = [
  {
    name: 'a claim locks nothing',
    order: 'none',
    caught: ['duplicate'],
    async play(trial) {
      trial.rewrite(/for update skip locked/, '')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      // Both have found the row before either has taken it: somebody else has it locked for a moment.
      const lock = await trial.h.connect('lock')
      await lock.query('begin')
      await lock.query('select 1 from outbox_delivery for update')
      const first = w1.claim()
      await Promise.race([first, trial.h.untilBlocked('w1')])
      const second = w2.claim()
      await Promise.race([second, trial.h.untilBlocked('w2')])
      await lock.query('commit')
      const claims = [
        ...(await first).map((it) => [w1, it] as const),
        ...(await second).map((it) => [w2, it] as const),
      ]
      const runs = claims.map(([worker, delivery]) => ({ worker, delivery, run: worker.begin(delivery) }))
      for (const { worker, delivery, run } of runs) {
        run.done()
        await worker.settle(delivery, DONE)
      }
      await w1.drain()
    },
  },
  {
    name: 'the low-water bound passes positions that are not decided',
    order: 'none',
    caught: ['stuck'],
    async play(trial) {
      trial.rewrite(/pg_snapshot_xmin\(pg_current_snapshot\(\)\) > \$5::text::xid8/, '$5::text is not null')
      const clock = new ManualClock()
      const worker = trial.actor('w', clock)
      await trial.subscribe()
      const claimAndRun = async (): Promise<void> => {
        for (const delivery of await worker.claim()) await worker.run(delivery)
        await worker.pool.idle()
        await clock.advance(1_000)
      }
      const late = await trial.h.connect('late')
      const event = trial.event('late')
      const publication = trial.journal.begun([event])
      await late.query('begin')
      await trial.insert(late, event)
      await trial.publish('early')
      // The first proposes a bound, and the second decides on it.
      await claimAndRun()
      await claimAndRun()
      await claimAndRun()
      publication.committing()
      await late.query('commit')
      publication.concluded('committed')
      await claimAndRun()
      await claimAndRun()
    },
  },
  {
    name: 'a dead letter is written after its delivery is DEAD, in another transaction',
    order: 'none',
    caught: ['dead without a letter', 'stuck'],
    async play(trial) {
      trial.rewrite(/where c\.status = 'DEAD'$/, 'where false')
      await trial.dropTrigger('outbox_delivery', 'outbox_delivery_letter')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      const delivery = await w1.claimOne()
      w1.begin(delivery).failed()
      await w1.settle(delivery, dead)
      await trial.kill('w1')
      await w2.drain()
    },
  },
  {
    name: 'a redrive leaves its dead letter open',
    order: 'none',
    caught: ['open letter of one that is not dead', 'two open letters'],
    async play(trial) {
      await trial.replaceFunction(
        'outbox_deliver_again',
        /letter := [^;]*outbox_close_dead_letter[^;]*;/,
        `
        select * into letter from ${trial.h.db.quoted}.outbox_dead_letter where id = letter_id;`,
      )
      await trial.replaceFunction(
        'outbox_refuse_transition',
        /and l\.resolved and l\.resolved_xid = pg_current_xact_id\(\)/,
        '',
      )
      const worker = trial.actor('w')
      await trial.subscribe()
      await trial.publish('a')
      const fail = async (): Promise<void> => {
        const delivery = await worker.claimOne()
        worker.begin(delivery).failed()
        await worker.settle(delivery, dead)
      }
      await fail()
      const { pool, schema } = trial.h.db
      const letters = createDeadLetters(postgresStore({ pool, schema }))
      for (const { id } of await letters.list()) await letters.retry(id, { operator: 'a person' })
      await trial.inspect()
      await fail()
    },
  },
  {
    name: 'retention forgets what is not done',
    order: 'none',
    caught: ['stuck', 'without its event'],
    async play(trial) {
      await trial.replaceFunction('outbox_removable', /d\.status <> 'DONE'/, 'false')
      await trial.replaceFunction('outbox_remove', /delete from \S+outbox_delivery d\s[^;]*;/, '')
      const worker = trial.actor('w')
      await trial.subscribe()
      const [event] = await trial.publish('a')
      await trial.h.db.pool.query('select outbox_forget($1::uuid[])', [[event?.eventId]])
      await worker.drain()
    },
  },
]
