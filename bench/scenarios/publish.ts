import { dropSchemas, settleDown } from '../support/clean-up.ts'
import { prepareSchema } from '../support/commitpost.ts'
import type { PublishReport, PublishTask } from '../support/protocol.ts'
import { bar } from '../support/results.ts'
import { FULL_EVENTS, type Scenario, type Session } from '../support/scenario.ts'
import { startProgram } from '../support/start-program.ts'
import { turned } from '../support/turned.ts'

type PublishContender = Pick<PublishTask, 'way' | 'clients' | 'batch'> & { readonly name: string }

const SINGLY = { clients: 16, batch: 1 } as const
const IN_BATCHES = { clients: 1, batch: 1_000 } as const

const WITH_PUBLISH: PublishContender = {
  name: 'business transaction that publishes to commitpost',
  way: 'business-and-publish',
  ...SINGLY,
}
/**
 * The bar is against the better of them: nothing but the publish is left out of the first, and the second does without
 * Commitpost altogether.
 */
const WITHOUT: readonly PublishContender[] = [
  { name: 'business transaction', way: 'business', ...SINGLY },
  { name: 'business transaction with pg alone', way: 'plain-business', ...SINGLY },
]
const PUBLISH_ALL: PublishContender = {
  name: 'commitpost publishAll of 1000',
  way: 'publish-all',
  ...IN_BATCHES,
}
const UNNEST: PublishContender = { name: 'unnest of 1000 into a bare table', way: 'unnest', ...IN_BATCHES }
const CONTENDERS = [...WITHOUT, WITH_PUBLISH, UNNEST, PUBLISH_ALL]

const WINDOW = { warmUpSeconds: 6, seconds: 15 } as const
const ACCOUNTS = 10_000

/** What an event costs the transaction that publishes it; one subscription gets it, no worker runs. */
export const publishScenario: Scenario = {
  name: 'publish',
  contenders: CONTENDERS.map(({ name }) => name),
  method: { contenders: CONTENDERS, ...WINDOW, accounts: ACCOUNTS },
  run: async (session) => {
    for (const contender of turned(CONTENDERS, session.round)) {
      if (session.includes(contender.name)) await measurePublish(session, contender)
    }
  },
  bars: (results) => [
    ...bar(
      'business transaction at 16 clients, with a publish against without',
      results.ratioToBest('perSecond', 'publish', WITH_PUBLISH.name, WITHOUT),
      'at least',
      0.6,
    ),
    ...bar(
      'publishAll of 1000 against unnest into a bare table',
      results.ratio('perSecond', ['publish', PUBLISH_ALL.name], ['publish', UNNEST.name]),
      'at least',
      0.8,
    ),
  ],
}

async function measurePublish(session: Session, { name, ...load }: PublishContender): Promise<void> {
  const { database, events, round, results } = session
  session.progress(`publish: ${name}`)
  await dropSchemas(database)
  await database.pool.query(TABLES)
  await prepareSchema(database.pool, { count: 1, order: 'none', batchSize: 1_000, concurrency: 100 })
  await settleDown(database)
  const size = Math.min(1, events / FULL_EVENTS)
  const task: PublishTask = {
    ...load,
    url: database.url,
    accounts: ACCOUNTS,
    warmUpSeconds: WINDOW.warmUpSeconds * size,
    seconds: WINDOW.seconds * size,
  }
  const program = startProgram<PublishReport>('publish', task)
  await program.ready
  program.tell({ type: 'go' })
  const { perSecond, microsEach } = await program.report
  results.add({ scenario: 'publish', contender: name, round, figures: { perSecond, nodeMicros: microsEach } })
}

const TABLES = `
  create schema bench_business;
  create table bench_business.account (id int primary key, balance bigint not null);
  insert into bench_business.account select i, 1000000 from generate_series(1, ${ACCOUNTS}) i;
  create table bench_business.orders (
    id bigint generated always as identity primary key, account int not null, note text not null,
    created_at timestamptz not null default now());
  create table bench_business.bare_event (
    id bigint generated always as identity primary key, event_id uuid not null, event_type text not null,
    aggregate_id text not null, payload jsonb not null, created_at timestamptz not null default now())`
