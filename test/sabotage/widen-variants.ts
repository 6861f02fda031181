import { untilActive } from '../store/contract/helpers.ts'
import type { Actor } from './actor.ts'
import type { Variant } from './variant.ts'

const widened = { order: 'aggregate', types: ['OrderPlaced'], caught: ['inversion'] } as const

const serve = async (worker: Actor): Promise<void> => {
  for (const delivery of await worker.claim()) await worker.run(delivery)
}

export const widenVariants: readonly Variant[] = [
  {
    ...widened,
    name: 'a widening takes its snapshot in its own transaction',
    async play(trial) {
      trial.rewrite(/when s\.lanes = 0 .* then pg_current_snapshot\(\)/, 'else pg_current_snapshot()')
      const [worker, registrar] = [trial.actor('w'), trial.actor('registrar')]
      await trial.subscribe()
      await worker.takeLanes()
      const commit = registrar.pool.holdBefore(/^commit/)
      const widening = trial.widen(registrar, 'OrderPaid')
      await commit.reached
      await trial.publishInTurn([trial.event('a', 'OrderPaid'), trial.event('a')])
      await serve(worker)
      commit.go()
      await widening
      await untilActive(worker.store)
      await worker.drain()
    },
  },
  {
    ...widened,
    name: 'one that is widened is served up to a position, whatever had ended by then',
    async play(trial) {
      trial.rewrite(/case when \(select swept from open\) is null/, 'case when true')
      const worker = trial.actor('w')
      await trial.subscribe()
      await worker.takeLanes()
      const events = [trial.event('a', 'OrderPaid'), trial.event('a')]
      const publication = trial.journal.begun(events)
      const publisher = await trial.h.connect('publisher')
      await publisher.query('begin')
      for (const event of events) await trial.insert(publisher, event)
      await trial.widen(worker, 'OrderPaid')
      publication.committing()
      await publisher.query('commit')
      publication.concluded('committed')
      await serve(worker)
      await untilActive(worker.store)
      await worker.drain()
    },
  },
  {
    ...widened,
    name: 'the second of two widenings joins by the snapshot of the first',
    async play(trial) {
      trial.rewrite(/case when \(select swept from open\) is null/, 'case when true')
      trial.rewrite(/(\bt\s+set) joined_snapshot = pg_current_snapshot\(\),/, '$1')
      const worker = trial.actor('w')
      await trial.subscribe()
      await worker.takeLanes()
      const old = await trial.h.connect('old')
      await old.query('begin; select pg_current_xact_id()')
      await trial.widen(worker, 'OrderPaid')
      await trial.publishInTurn([trial.event('a', 'OrderShipped'), trial.event('a')])
      await worker.store.advanceJoining()
      await serve(worker)
      await trial.widen(worker, 'OrderShipped')
      await old.query('commit')
      await untilActive(worker.store)
      await worker.drain()
    },
  },
]
