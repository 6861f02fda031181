import { type PgClient, type PgPool, type RawRow, rawQuery, withClient, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { serveFurther, serveOn } from './serve-on.ts'
import { sweepPage, sweepRecent } from './sweep-sql.ts'

// Taken after the registration has committed, so that every publisher whose trigger did not see the subscription has
// an older transaction id. The horizon of a snapshot is no such bound: running transactions may lie above it.
// Skips what is locked instead of waiting for it: whoever widens it now commits after this id was taken. One that this
// server has not come to is another server's, from a restored backup: it would not be passed for years.
const raiseBarrierSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set barrier = pg_current_xact_id(), updated_at = clock_timestamp()
   where s.ctid = any (array(
     select o.ctid from ${schema}.outbox_subscription o
      where o.state = 'joining'
        and (o.barrier is null or o.barrier >= pg_snapshot_xmax(pg_current_snapshot()))
        for update skip locked))`

const nextJoiningSql = (schema: QuotedSchema): string => `
  select s.id, s.joined_snapshot is null, s.served_to is not null, s.start_from <> 'now', s.barrier is not null
     and pg_snapshot_xmin(pg_current_snapshot()) > s.barrier
    from ${schema}.outbox_subscription s
   where s.state = 'joining'
   order by s.id
     for update skip locked`

/** How many events one step looks at: long enough to be quick, short enough to let others in between. */
const CHUNK = 5_000

const sweepRecentSql = (schema: QuotedSchema): string => `
  with ${sweepRecent(schema)}
  select true`

const sweepAllSql = (schema: QuotedSchema): string => `
  with ${sweepPage(schema, CHUNK)},
  moved as (
    update ${schema}.outbox_subscription t
       set swept_to = coalesce((select p.event_id from page p order by p.event_id desc limit 1), t.swept_to)
     where t.id = $1
    returning 1
  )
  select (select count(*) from page) < ${CHUNK} from moved`

const activateSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set state = 'active', served_to = null, generation = s.generation + 1, updated_at = clock_timestamp()
   where s.id = $1`

const unfinishedSql = (schema: QuotedSchema): string => `
  select s.name, s.state from ${schema}.outbox_subscription s
   where s.state = 'joining' or (s.retired_at is not null and s.closed_at is null)
   order by s.name`

const closeRetiredSql = (schema: QuotedSchema): string => `select ${schema}.outbox_close_retired()`

/**
 * Takes every joining subscription one step further, and what is left to do of retired ones. Returns the names of those
 * that still join.
 */
export async function advanceJoining(pool: PgPool, schema: QuotedSchema): Promise<readonly string[]> {
  // Nearly always nothing joins: one cheap question.
  const unfinished = await withClient(pool, (client) => rawQuery(client, unfinishedSql(schema), []))
  if (unfinished.some(([, state]) => state === 'retired')) await closeRetired(pool, schema)
  if (joiningNames(unfinished).length === 0) return []
  await withTransaction(pool, (client) => rawQuery(client, raiseBarrierSql(schema), []))
  return withTransaction(pool, async (client) => {
    for (const row of await rawQuery(client, nextJoiningSql(schema), [])) await step(client, schema, row)
    return joiningNames(await rawQuery(client, unfinishedSql(schema), []))
  })
}

/** Takes what is left to do of retired subscriptions one step further. Returns how many are not done with. */
export async function closeRetired(pool: PgPool, schema: QuotedSchema): Promise<number> {
  const [row] = await withTransaction(pool, (client) => rawQuery(client, closeRetiredSql(schema), []))
  return Number(row?.[0])
}

function joiningNames(unfinished: readonly RawRow[]): readonly string[] {
  return unfinished.filter(([, state]) => state === 'joining').map(([name]) => name as string)
}

async function step(client: PgClient, schema: QuotedSchema, joining: RawRow): Promise<void> {
  const id = joining[0] as string
  const [waitsForSnapshot, isServed, sweepsAll, barrierPassed] = joining
    .slice(1)
    .map((value) => value === 't')
  if (waitsForSnapshot) return serveOn(client, schema, id)
  if (!barrierPassed) {
    if (isServed) await serveFurther(client, schema, id)
    return
  }
  const [swept] = await rawQuery(client, sweepsAll ? sweepAllSql(schema) : sweepRecentSql(schema), [id])
  if (swept?.[0] === 't') await rawQuery(client, activateSql(schema), [id])
}
