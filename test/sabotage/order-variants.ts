import { takeOverByHand } from '../hazards/lane-scene.ts'
import { DONE, retryLater } from '../store/contract/helpers.ts'
import type { Variant } from './variant.ts'

export const orderVariants: readonly Variant[] = [
  {
    name: 'a claim looks whose the lane is, and does not lock it',
    order: 'aggregate',
    caught: ['inversion'],
    async play(trial) {
      trial.rewrite(/for update\) l$/, ') l')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a', 'a')
      await w1.takeLanes()
      const commit = await takeOverByHand(trial.h)
      trial.journal.fault('pause', ['w1'])
      const claiming = w1.claim(1)
      await Promise.race([claiming, trial.h.untilBlocked('w1')])
      w2.lanes = await commit()
      const runs = (await claiming).map((delivery) => ({ delivery, run: w1.begin(delivery) }))
      for (const delivery of await w2.claim()) await w2.run(delivery)
      for (const { delivery, run } of runs) {
        run.done()
        await w1.settle(delivery, DONE)
      }
      await w2.drain()
    },
  },
  {
    name: 'a claim does not ask whose the lane is, and in which epoch',
    order: 'aggregate',
    caught: ['inversion', 'overlap'],
    async play(trial) {
      trial.rewrite(/ and l\.epoch = w\.epoch$/, '')
      trial.rewrite(/ and l\.owner = \$2 and l\.until > clock_timestamp\(\)$/, '')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a', 'a')
      await w1.takeLanes()
      await trial.pause('w1')
      await w2.takeLanes()
      const first = await w2.claimOne()
      const run = w2.begin(first)
      for (const delivery of await w1.claim()) await w1.run(delivery)
      run.done()
      await w2.settle(first, DONE)
      await w2.drain()
    },
  },
  {
    name: 'an event that waits for its retry does not keep its place in its key',
    order: 'aggregate',
    caught: ['inversion'],
    async play(trial) {
      trial.rewrite(/is not null end as blocked$/, 'is not null and false end as blocked')
      const worker = trial.actor('w')
      await trial.subscribe()
      await trial.publish('a', 'a')
      await worker.takeLanes()
      const first = await worker.claimOne()
      worker.begin(first).failed()
      await worker.settle(first, retryLater)
      for (const delivery of await worker.claim()) await worker.run(delivery)
      await worker.drain()
    },
  },
  {
    name: 'what waited behind a retry is not let go',
    order: 'aggregate',
    caught: ['stuck'],
    async play(trial) {
      trial.rewrite(/\b[dfp]\.next_retry_at = 'infinity'/, 'false')
      const worker = trial.actor('w')
      await trial.subscribe()
      await trial.publish('a', 'a')
      await worker.takeLanes()
      const first = await worker.claimOne()
      worker.begin(first).failed()
      await worker.settle(first, retryLater)
      await worker.claim()
      await worker.drain()
    },
  },
  {
    name: 'a numbered event takes its position before its key is locked',
    order: 'aggregate',
    caught: ['inversion'],
    async play(trial) {
      await trial.replaceFunction('outbox_number', /new\.id := nextval[^;]*;/, '')
      const worker = trial.actor('w')
      await trial.subscribe()
      const [one, two, three] = [trial.event('a'), trial.event('a'), trial.event('a')]
      const [first, second] = [await trial.h.connect('first'), await trial.h.connect('second')]
      const before = trial.journal.begun([one, two])
      const after = trial.journal.begun([three])
      await first.query('begin')
      await trial.insert(first, one, true)
      after.committing()
      const waiting = trial.insert(second, three, true)
      await trial.h.untilBlocked('second')
      await trial.insert(first, two, true)
      before.committing()
      await first.query('commit')
      before.concluded('committed')
      await waiting
      after.concluded('committed')
      await worker.drain()
    },
  },
]
