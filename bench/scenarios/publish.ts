import { dropSchemas, settleDown } from '../support/clean-up.ts'
import { prepareSchema } from '../support/commitpost.ts'
import type { PublishReport, PublishTask } from '../support/protocol.ts'
import { bar } from '../support/results.ts'
import type { Scenario, Session } from '../support/scenario.ts'
import { startProgram } from '../support/start-program.ts'

interface PublishContender {
  readonly name: string
  readonly way: PublishTask['way']
  readonly clients: number
}

const BUSINESS = { name: 'business transaction', way: 'business', clients: 16 } as const
const WITH_PUBLISH = {
  name: 'business transaction that publishes to commitpost',
  way: 'business-and-publish',
  clients: 16,
} as const
const PUBLISH_ALL = { name: 'commitpost publishAll of 1000', way: 'publish-all', clients: 1 } as const
const UNNEST = { name: 'unnest of 1000 into a bare table', way: 'unnest', clients: 1 } as const
const CONTENDERS: readonly PublishContender[] = [BUSINESS, WITH_PUBLISH, UNNEST, PUBLISH_ALL]

/** What an event costs the transaction that publishes it; one subscription gets it, no worker runs. */
export const publishScenario: Scenario = {
  name: 'publish',
  contenders: CONTENDERS.map(({ name }) => name),
  run: async (session) => {
    const order = session.round % 2 === 1 ? CONTENDERS : CONTENDERS.toReversed()
    for (const contender of order) {
      if (session.includes(contender.name)) await measurePublish(session, contender)
    }
  },
  bars: (results) => [
    ...bar(
      'business transaction at 16 clients, with a publish against without',
      results.ratio('perSecond', ['publish', WITH_PUBLISH.name], ['publish', BUSINESS.name]),
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

const SECONDS = 15

async function measurePublish(session: Session, { name, way, clients }: PublishContender): Promise<void> {
  const { database, events, round, results } = session
  session.progress(`publish: ${name}`)
  await dropSchemas(database)
  await database.pool.query(TABLES)
  await prepareSchema(database.pool, { count: 1, order: 'none', batchSize: 1_000, concurrency: 100 })
  await settleDown(database)
  const seconds = Math.min(SECONDS, (SECONDS * events) / 200_000)
  const program = startProgram<PublishReport>('publish', { url: database.url, way, clients, seconds })
  await program.ready
  program.tell({ type: 'go' })
  const { perSecond, microsEach } = await program.report
  results.add({ scenario: 'publish', contender: name, round, figures: { perSecond, nodeMicros: microsEach } })
}

const TABLES = `
  create schema bench_business;
  create table bench_business.account (id int primary key, balance bigint not null);
  insert into bench_business.account select i, 1000000 from generate_series(1, 10000) i;
  create table bench_business.orders (
    id bigint generated always as identity primary key, account int not null, note text not null,
    created_at timestamptz not null default now());
  create table bench_business.bare_event (
    id bigint generated always as identity primary key, event_id uuid not null, event_type text not null,
    aggregate_id text not null, payload jsonb not null, created_at timestamptz not null default now())`
