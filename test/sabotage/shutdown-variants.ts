import { createOutbox } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { eventually } from '../support/program.ts'
import { identityOf } from './actor.ts'
import { events } from './events.ts'
import { SUBSCRIPTION, type Trial } from './trial.ts'
import type { Variant } from './variant.ts'

/** A worker that runs one at a time has taken two when it is stopped, and finishes what it is at. */
async function stopInTheMiddle(trial: Trial): Promise<void> {
  const store = postgresStore({ pool: trial.actor('w1').pool, schema: trial.h.db.schema })
  const outbox = createOutbox({ store, events, notify: false })
  let finish = (): void => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  let claimed = 0
  const worker = outbox.worker(
    [
      outbox.subscription(SUBSCRIPTION, {
        concurrency: 1,
        maxAttempts: 3,
        on: {
          '*': async (event, { attempt }) => {
            const run = trial.journal.seen(identityOf(event), { worker: 'w1', attempt, sequence: null })
            await finished
            run.done()
          },
        },
      }),
    ],
    {
      workerId: 'w1',
      listen: false,
      observers: [
        (told) => {
          if (told.kind === 'claimed') claimed += told.count
          if (told.kind === 'stopping') finish()
        },
      ],
    },
  )
  await worker.start()
  await eventually('it has taken both', () => claimed === 2)
  await worker.stop()
}

export const shutdownVariants: readonly Variant[] = [
  {
    name: 'what was not started is not given back',
    order: 'none',
    caught: ['stuck'],
    async play(trial) {
      trial.rewrite(
        /(?<=select d\.version, i\.\*\s+from )input i$/,
        "(select * from input where kind <> 'release') i",
      )
      const other = trial.actor('w2')
      await trial.subscribe()
      await trial.publish('a', 'b')
      await stopInTheMiddle(trial)
      // Nobody's lease has ended: what was given back is there to be taken.
      await other.drain()
    },
  },
]
