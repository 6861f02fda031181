import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createOutbox, type Outbox, UnknownOutcomeError } from '../../src/index.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { catalogue } from './catalogue.ts'
import type { Outcome } from './checker/entry.ts'
import type { ChaosPublisherConfig } from './config.ts'
import { type Draft, draw, identitiesOf, type Operation } from './drafts.ts'
import { type Journal, openJournal } from './journal.ts'

/** Publishing that goes on until it is stopped. */
export interface Publishing {
  /** Finishes what is under way. */
  stop(): Promise<void>
}

const LOOPS = 4

/** What a loop of publishing works with. */
interface Means {
  readonly config: ChaosPublisherConfig
  readonly pool: pg.Pool
  readonly outbox: Outbox<typeof catalogue, Transaction>
  readonly journal: Journal
  readonly isStopped: () => boolean
  readonly onPublished: (events: number) => void
}

/** Publishes in several transactions at once, of all kinds, and writes down what it was told of each. */
export function startPublishing(config: ChaosPublisherConfig, report: (count: number) => void): Publishing {
  const { id, schema, timeoutMs, url } = config
  const pool = sturdyPool({
    connectionString: url,
    application_name: id,
    query_timeout: timeoutMs,
    connectionTimeoutMillis: timeoutMs,
  })
  const journal = openJournal(config.journals, id)
  let [isStopped, count] = [false, 0]
  const means: Means = {
    config,
    pool,
    outbox: createOutbox({ store: postgresStore({ pool, schema }), events: catalogue }),
    journal,
    isStopped: () => isStopped,
    onPublished: (events) => {
      count += events
      report(count)
    },
  }
  const loops = Array.from({ length: LOOPS }, (_, n) => publishOnAndOn(means, n))
  return {
    stop: async () => {
      isStopped = true
      await Promise.all(loops)
      await pool.end()
      journal.close()
    },
  }
}

async function publishOnAndOn(means: Means, loop: number): Promise<void> {
  const { id, seed } = means.config
  const random = seededRandom(seed + loop)
  for (let n = 0; !means.isStopped(); n += 1) {
    const operation = draw(random, `${id}.${loop}`, n)
    await publishUntilKnown(means, operation)
    await sleep(60 + random() * 240)
  }
}

/** An outcome that stays unknown is retried by some, under the same ids, and left at that by others. */
async function publishUntilKnown(means: Means, operation: Operation): Promise<void> {
  const { journal, config, onPublished, isStopped } = means
  const { transaction, drafts } = operation
  const line = { kind: 'begun', transaction, publisher: config.id, events: identitiesOf(drafts) } as const
  for (let outcome: Outcome = 'unknown', tries = 0; ; tries += 1) {
    journal.write(line)
    outcome = await attempt(means, operation)
    journal.write({ kind: 'concluded', transaction, outcome })
    if (outcome === 'committed') onPublished(drafts.length)
    if (outcome !== 'unknown' || !operation.insists || isStopped() || tries > 20) return
    await sleep(100)
  }
}

class OnPurpose extends Error {}

async function attempt(means: Means, operation: Operation): Promise<Outcome> {
  try {
    if (operation.style === 'autocommit') await inOneStatement(means, operation)
    else await inTransaction(means, operation)
    return 'committed'
  } catch (error) {
    if (error instanceof OnPurpose) return 'rolledBack'
    return error instanceof UnknownOutcomeError ? 'unknown' : 'rolledBack'
  }
}

async function inTransaction({ outbox, pool, config, journal }: Means, operation: Operation): Promise<void> {
  const { isolation, style, drafts, transaction, waitMs } = operation
  await outbox.inTransaction(
    pool,
    async (tx) => {
      if (style === 'sql') for (const draft of drafts) await insert(tx, config.schema, draft)
      else await outbox.publishAll(tx, drafts.map(toInput), { onDuplicate: 'ignore' })
      if (waitMs > 0) await sleep(waitMs)
      if (style === 'rollback') throw new OnPurpose('This one is not to be')
      journal.write({ kind: 'committing', transaction })
    },
    isolation === null ? {} : { isolation },
  )
}

/** No BEGIN, no COMMIT: the statement is the request to commit. */
async function inOneStatement(means: Means, { drafts, transaction }: Operation): Promise<void> {
  means.journal.write({ kind: 'committing', transaction })
  try {
    for (const draft of drafts) await insert(means.pool, means.config.schema, draft)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // What the server refused did not happen; whatever else went wrong, it may have.
    if (/^(22|23|25|40|42|53|54|55)/.test(code) || code === 'ECONNREFUSED') throw error
    throw new UnknownOutcomeError('the statement', [], { cause: error })
  }
}

function toInput(draft: Draft): Parameters<Outbox<typeof catalogue, Transaction>['publishAll']>[1][number] {
  const { eventId, type, aggregateId, payload, headers } = draft
  return { eventId, type, aggregateId, payload, headers }
}

/** What a program in any other language would do. */
async function insert(client: Pick<pg.Pool, 'query'>, schema: string, draft: Draft): Promise<void> {
  const { eventId, stream, type, aggregateId, isNumbered, payload, headers } = draft
  await client.query(
    `insert into ${schema}.outbox_event
       (event_id, stream, event_type, aggregate_type, aggregate_id, sequence, payload, headers)
     values ($1, $2, $3, 'walk', $4, $5, $6, $7) on conflict do nothing`,
    [eventId, stream, type, aggregateId, isNumbered ? 1 : null, JSON.stringify(payload), headers],
  )
}
