import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { UnknownOutcomeError } from '../../src/index.ts'
import { createFaultDatabase, type FaultDatabase } from '../support/fault-database.ts'
import { type LostPart, startFaultProxy } from '../support/fault-proxy.ts'
import { bePatient } from '../support/patience.ts'
import { stepOutbox } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

bePatient()

async function countEvents({ pool, schema }: FaultDatabase, eventId: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from ${schema}.outbox_event where event_id = $1`,
    [eventId],
  )
  return rows[0]?.count ?? 0
}

describe('a connection that breaks during COMMIT', () => {
  const cases: readonly { title: string; part: LostPart; written: number }[] = [
    { title: 'E5 when only the answer is lost, the event is there', part: 'reply', written: 1 },
    { title: 'E5 when the request is lost, it is not', part: 'request', written: 0 },
  ]
  test.each(cases)(
    '$title: either way the outcome is reported as unknown, and a retry under the same id leaves one event',
    async ({ part, written }) => {
      await using database = await createFaultDatabase()
      await using proxy = await startFaultProxy(database.url)
      const pool = sturdyPool({ connectionString: proxy.urlOf(database.url) })
      const outbox = stepOutbox(pool, database.schema)
      const eventId = randomUUID()
      const publish = (): Promise<string> =>
        outbox.inTransaction(pool, (tx) =>
          outbox.publish(tx, 'StepTaken', {
            eventId,
            aggregateId: 'walk',
            payload: { seq: 0 },
            onDuplicate: 'ignore',
          }),
        )

      const cut = proxy.loseNextCommit(part)
      const failure = await publish().catch((error: unknown) => error)
      await cut

      expect(failure).toBeInstanceOf(UnknownOutcomeError)
      expect(await countEvents(database, eventId)).toBe(written)
      expect(await publish()).toBe(eventId)
      expect(await countEvents(database, eventId)).toBe(1)
      await pool.end()
    },
  )
})
