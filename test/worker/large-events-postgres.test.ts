import { expect, test } from 'vitest'
import { MOST_CHARACTERS } from '../../src/queue/claim-size.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { deferred } from '../queue/fakes.ts'
import { eventually } from '../support/program.ts'
import type { PostgresOutbox } from './postgres-outbox.ts'
import { postgresOutbox } from './postgres-outbox.ts'

const EVENTS = 120
const CHARACTERS = 500_000

/** Events that compress well: they are large where they are read, and not on disk. */
async function publishLarge({ outbox, pool }: PostgresOutbox): Promise<void> {
  const filler = 'x'.repeat(CHARACTERS)
  for (let from = 0; from < EVENTS; from += 20) {
    await outbox.inTransaction(pool, async (tx) => {
      const payload = { n: from, filler }
      const one = (n: number) => ({ type: 'OrderPaid' as const, aggregateId: String(from + n), payload })
      await outbox.publishAll(
        tx,
        Array.from({ length: 20 }, (_, n) => one(n)),
      )
    })
  }
}

test.each(['none', 'aggregate'] as const)(
  'a worker takes no more large events at once than it has room for (order: %s)',
  async (order) => {
    await using setup = await postgresOutbox()
    const { outbox } = setup
    await publishLarge(setup)
    const full = deferred()
    let [handled, inHand, most] = [0, 0, 0]
    const large = subscription<typeof outbox.events, object>('large', {
      order,
      startFrom: 'beginning',
      // A claim every 10 ms, whether handlers are free or not.
      drain: false,
      batchSize: 50,
      pollMs: 10,
      on: {
        OrderPaid: async () => {
          await full.promise
          handled += 1
        },
      },
    })
    await using worker = outbox.worker([large], {
      observers: [
        (event) => {
          if (event.kind === 'claimed') inHand += event.count
          if (event.kind === 'handled') inHand -= 1
          most = Math.max(most, inHand)
          if (inHand > 50) full.resolve()
        },
      ],
    })
    await worker.start()
    await eventually('all are handled', () => handled === EVENTS)
    expect(most).toBeLessThanOrEqual(MOST_CHARACTERS / CHARACTERS)
  },
)
