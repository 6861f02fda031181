import { type Clock, systemClock } from '../../runtime/clock.ts'
import {
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../../runtime/option-checks.ts'
import { RefusedError } from '../../runtime/refused-error.ts'
import { sqlState } from '../../runtime/sql-state.ts'
import { isPool, type PgPool, rawQuery, withTransaction } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import { explained } from './explained.ts'
import { DEFAULT_SCHEMA, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { convertSql, LONGEST_PERIOD_DAYS, prepareSql, validateSqls } from './partition-steps.ts'
import { refusal } from './refusal.ts'
import { tendPartitions } from './tend-partitions.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** Where to make partitions, and of what length. */
export interface PartitionOptions {
  /**
   * The schema's name, as it is: quoting is done here.
   * @default 'commitpost'
   */
  readonly schema?: string
  /**
   * How many days a period has, 1 to 90. On tables that are partitioned already it counts for periods made from now on.
   * @default 1
   */
  readonly everyDays?: number
}

/** How the tables are divided now. */
export interface PartitionReport {
  /** True where this call converted plain tables. */
  readonly converted: boolean
  readonly everyDays: number
  /** What is older is in the rest. */
  readonly restUntil: Date
  /** Up to here there are partitions. */
  readonly madeUntil: Date
}

// A statement waits for its lock a quarter of a second, and all others wait behind it: they have the rest of the time.
const LOCK_PAUSE_MS = 1_000
const LOCK_TRIES = 120
// The tables were empty when they were looked at, and not any more when they were locked.
const ROUNDS = 5

const LOCK_NOT_AVAILABLE = '55P03'
const CHECK_VIOLATED = '23514'

/**
 * Divides `outbox_event` and `outbox_delivery` by time, while they are in use: nobody waits for longer than the moment in
 * which they are exchanged. To be called by the owner of the tables. What an interrupted call had done is taken up by the
 * next; any number may run at once.
 * @throws INVALID_STATE where ids do not fit or something hangs on the tables; nothing is changed then.
 */
export async function partitionTables(
  pool: PgPool,
  given: PartitionOptions = {},
  clock: Clock = systemClock,
): Promise<PartitionReport> {
  refuseProblems('partitionTables', partitionProblems(pool, given))
  const schema = quoteSchema(given.schema ?? DEFAULT_SCHEMA)
  const everyDays = given.everyDays ?? 1
  return explained(schema, 'Partitioning', async () => {
    const converted = await convert({ pool, schema, clock }, everyDays)
    await whenUnlocked(clock, () => tendPartitions(pool, schema))
    return report(pool, schema, converted)
  })
}

interface Conversion {
  readonly pool: PgPool
  readonly schema: QuotedSchema
  readonly clock: Clock
}

async function convert(conversion: Conversion, everyDays: number): Promise<boolean> {
  const { schema } = conversion
  for (let round = 0; round < ROUNDS; round += 1) {
    const hasMore = await step(conversion, prepareSql(schema, everyDays))
    if (!hasMore) return false
    if ((await validated(conversion)) && (await step(conversion, convertSql(schema)))) return true
  }
  throw new RefusedError(
    'partition-unprepared',
    'The tables could not be prepared. Nothing was changed: try again.',
  )
}

/** False where an id came in just before that has no place: to prepare once more says which. */
async function validated(conversion: Conversion): Promise<boolean> {
  try {
    for (const sql of validateSqls(conversion.schema)) await step(conversion, sql)
    return true
  } catch (error) {
    if (driverErrorOf(error)?.code !== CHECK_VIOLATED) throw error
    await step(conversion, `select ${conversion.schema}.outbox_abandon_partitions()`)
    return false
  }
}

/** One step, in a transaction of its own. True where it answered so. */
async function step({ pool, clock }: Conversion, sql: string): Promise<boolean> {
  try {
    return await whenUnlocked(clock, () =>
      withTransaction(pool, async (client) => {
        await rawQuery(client, `select set_config('statement_timeout', '0', true)`, [])
        const [row] = await rawQuery(client, sql, [])
        return row?.[0] === 't'
      }),
    )
  } catch (error) {
    throw refusal(error)
  }
}

async function whenUnlocked<Result>(clock: Clock, work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error
      if (tries === LOCK_TRIES) throw neverUnlocked(error)
      await clock.sleep(LOCK_PAUSE_MS)
    }
  }
}

function neverUnlocked(cause: unknown): RefusedError {
  return new RefusedError(
    'partition-locked',
    'The tables could not be locked: a transaction or a vacuum has used them all the time. What is done so far stays, ' +
      'and the next call goes on with it. `commitpost doctor` names the longest transaction.',
    { cause },
  )
}

const reportSql = (schema: QuotedSchema): string => `
  select p.every, ${timeColumn(`${schema}.outbox_start_of(p.rest_until)`)},
         ${timeColumn(`${schema}.outbox_start_of(coalesce((select max(m.end_day) from ${schema}.outbox_period m), p.rest_until))`)}
    from ${schema}.outbox_partitioning p`

async function report(pool: PgPool, schema: QuotedSchema, converted: boolean): Promise<PartitionReport> {
  const [row] = await withTransaction(pool, (client) => rawQuery(client, reportSql(schema), []))
  return {
    converted,
    everyDays: Number(row?.[0]),
    restUntil: dateOf(row?.[1] as string),
    madeUntil: dateOf(row?.[2] as string),
  }
}

function partitionProblems(pool: unknown, options: PartitionOptions): readonly (string | null)[] {
  const poolProblem = isPool(pool) ? null : 'the first argument must be a pool, such as new pg.Pool()'
  const problem = recordProblem('the options', options)
  if (problem !== null) return [poolProblem, problem]
  return [
    poolProblem,
    ...unknownOptionProblems(options, ['schema', 'everyDays']),
    options.everyDays === undefined
      ? null
      : wholeNumberProblem('everyDays', options.everyDays, 1, LONGEST_PERIOD_DAYS),
  ]
}
