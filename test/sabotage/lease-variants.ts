import { beat, DONE, LEASE_MS, retryNow } from '../store/contract/helpers.ts'
import type { Actor } from './actor.ts'
import type { Trial } from './trial.ts'
import type { Variant } from './variant.ts'

const HOUR_MS = 3_600_000

/** w1 stands still with a delivery in hand until w2 has it. */
async function takeOver(trial: Trial, w1: Actor, w2: Actor) {
  const stale = await w1.claimOne()
  const zombie = w1.begin(stale)
  await trial.pause('w1')
  await w2.store.recover([trial.sub.id])
  const current = await w2.claimSuspect()
  if (current === null) throw new Error('w2 got nothing')
  return { stale, zombie, current }
}

/** One worker is in the middle of an event while the other does everything it finds. */
async function runBesideAnother(trial: Trial): Promise<void> {
  const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
  await trial.subscribe()
  await trial.publish('a')
  const delivery = await w1.claimOne()
  const run = w1.begin(delivery)
  await w2.drain()
  run.done()
  await w1.settle(delivery, DONE)
}

export const leaseVariants: readonly Variant[] = [
  {
    name: 'settle does not ask for the token',
    order: 'none',
    caught: ['duplicate'],
    async play(trial) {
      trial.rewrite(/ and d\.lease_token = i\.token/, '')
      const [w1, w2, w3] = [trial.actor('w1'), trial.actor('w2'), trial.actor('w3')]
      await trial.subscribe()
      await trial.publish('a')
      const { stale, zombie, current } = await takeOver(trial, w1, w2)
      const run = w2.begin(current)
      zombie.failed()
      await w1.settle(stale, retryNow)
      for (const found of await w3.claim()) await w3.run(found)
      run.done()
      await w2.settle(current, DONE)
    },
  },
  {
    name: 'a result is written over one that is final',
    order: 'none',
    caught: ['refused: a delivery cannot go from DONE to PENDING'],
    async play(trial) {
      trial.rewrite(
        /(?<=suspect = i\.suspect and i\.kind in \('release', 'park'\),)/,
        ' processed_at = null,',
      )
      trial.rewrite(/ and d\.lease_token = i\.token/, '')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      const { stale, zombie, current } = await takeOver(trial, w1, w2)
      await w2.run(current)
      zombie.failed()
      await trial.step(() => w1.settle(stale, retryNow))
    },
  },
  {
    name: 'leases are set by the clock of the worker, which is an hour behind',
    order: 'none',
    caught: ['duplicate'],
    async play(trial) {
      const now = new Date(Date.now() - HOUR_MS).toISOString()
      trial.rewrite(
        /clock_timestamp\(\)(?= \+ \$4 \* interval '1 millisecond' as until)/,
        `'${now}'::timestamptz`,
      )
      await runBesideAnother(trial)
    },
  },
  {
    name: 'recovery returns what is in hand, whatever its lease says',
    order: 'none',
    caught: ['duplicate'],
    async play(trial) {
      trial.rewrite(/[dl]\.(?:locked_)?until < clock_timestamp\(\)/, 'true')
      await runBesideAnother(trial)
    },
  },
  {
    name: 'leases are not extended',
    order: 'none',
    caught: ['duplicate'],
    async play(trial) {
      trial.rewrite(/locked_until = \(select until from moment\)/, 'locked_until = d.locked_until')
      trial.rewrite(/(?<= set )until = \(select until from moment\)(?=\s+where k\.)/, 'until = k.until')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      const delivery = await w1.claimOne()
      const run = w1.begin(delivery)
      // Its handler takes longer than a lease lasts, and heartbeats go out meanwhile.
      for (let beats = 0; beats < 4; beats += 1) {
        await trial.passLeases(LEASE_MS / 3)
        await beat(w1.store, trial.sub, 'w1', [delivery])
      }
      await w2.drain()
      run.done()
      await w1.settle(delivery, DONE)
    },
  },
  {
    name: 'a heartbeat revives a lease that has lapsed',
    order: 'aggregate',
    caught: ['lease beyond its lane'],
    async play(trial) {
      trial.rewrite(/ and d\.locked_until > m\.now/, '')
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      await trial.subscribe()
      await trial.publish('a')
      await w1.takeLanes()
      const delivery = await w1.claimOne()
      w1.begin(delivery)
      await trial.pause('w1')
      await beat(w1.store, trial.sub, 'w1', [delivery], w1.lanes)
      await trial.inspect()
      await trial.kill('w1')
      await w2.drain()
    },
  },
  {
    name: 'attempts are counted when they fail, and not when they begin',
    order: 'none',
    caught: ['stuck'],
    async play(trial) {
      trial.rewrite(/attempt_count = d\.attempt_count \+ 1/, 'attempt_count = d.attempt_count')
      trial.rewrite(
        /attempt_count = d\.attempt_count - case when d\.suspect then 0 else 1 end/,
        'attempt_count = d.attempt_count',
      )
      await trial.subscribe()
      await trial.publish('a')
      // Whoever runs it is killed by it: a fresh worker each time.
      for (let crash = 0; crash < 8; crash += 1) {
        const worker = trial.actor(`w${crash}`)
        await worker.store.recover([trial.sub.id])
        await trial.passTime()
        const [delivery] = [await worker.claimSuspect(), ...(await worker.claim())].filter(
          (it) => it !== null,
        )
        if (delivery === undefined) break
        worker.begin(delivery)
        await trial.kill(worker.id)
      }
    },
  },
  {
    name: 'a delivery is DONE before its handler has run',
    order: 'none',
    caught: ['lost'],
    async play(trial) {
      const [w1, w2] = [trial.actor('w1'), trial.actor('w2')]
      if (trial.broken) w1.onClaimed = (delivery) => w1.settle(delivery, DONE)
      await trial.subscribe()
      await trial.publish('a')
      w1.begin(await w1.claimOne())
      await trial.kill('w1')
      await w2.drain()
    },
  },
]
