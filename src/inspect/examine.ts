import type { DoctorFacts, DoctorLimits, TablesFacts } from '../store/doctor-facts.ts'
import { examineSubscriptions } from './examine-subscriptions.ts'
import { examineTables } from './examine-tables.ts'
import type { JudgedFinding } from './finding.ts'
import { queryWithoutValues } from './query-text.ts'

/** Judges what a look at the server and the tables came to. A check that finds nothing says so. */
export function examine(
  facts: DoctorFacts,
  limits: DoctorLimits,
  knownTypes: readonly string[] | null,
): readonly JudgedFinding[] {
  return [
    ...schema(facts),
    ...(facts.tables === null ? [] : examineTables(facts.tables, limits)),
    ...holders(facts, limits),
    ...durability(facts),
    ...clock(facts, limits),
    ...(facts.tables === null ? [] : judgedSubscriptions(facts.tables, knownTypes)),
  ]
}

function judgedSubscriptions(
  tables: TablesFacts,
  knownTypes: readonly string[] | null,
): readonly JudgedFinding[] {
  // Nothing was asked of tables that may not be read.
  return tables.unreadable.length > 0 ? [] : examineSubscriptions(tables, knownTypes)
}

function schema({ schema: known }: DoctorFacts): readonly JudgedFinding[] {
  const check = 'schema'
  // What may not be read is told among the rights.
  if (known === null) return []
  const { state, found, needed, changed } = known
  if (state !== 'current') {
    return [{ check, severity: 'problem', code: 'SCHEMA_NOT_CURRENT', facts: { state, found, needed } }]
  }
  if (changed.length === 0) {
    return [{ check, severity: 'ok', code: 'SCHEMA_CURRENT', facts: { version: needed } }]
  }
  return [{ check, severity: 'warning', code: 'SCHEMA_CHANGED', facts: { steps: changed } }]
}

function holders(
  { holders: found, seesAllSessions }: DoctorFacts,
  limits: DoctorLimits,
): readonly JudgedFinding[] {
  const check = 'xmin'
  const held = found
    .filter(({ seconds, transactions }) =>
      seconds === null ? transactions > limits.slotTransactions : seconds > limits.transactionSeconds,
    )
    .map(
      (holder): JudgedFinding => ({
        check,
        severity: 'warning',
        code: 'XMIN_HELD',
        facts: { ...holder, query: holder.query === null ? null : queryWithoutValues(holder.query) },
      }),
    )
  const hidden: readonly JudgedFinding[] = seesAllSessions
    ? []
    : [{ check, severity: 'warning', code: 'SESSIONS_HIDDEN', facts: {} }]
  const all = [...held, ...hidden]
  return all.length > 0 ? all : [{ check, severity: 'ok', code: 'XMIN_FREE', facts: {} }]
}

function durability({ settings }: DoctorFacts): readonly JudgedFinding[] {
  const check = 'durability'
  const off = Object.entries(settings)
    .filter(([, value]) => value === 'off')
    .map(
      ([setting, value]): JudgedFinding => ({
        check,
        // What publishes is raised to `on` by the trigger; the others are a matter of the whole server.
        severity: setting === 'synchronous_commit' ? 'warning' : 'problem',
        code: 'NOT_DURABLE',
        facts: { setting, value },
      }),
    )
  return off.length > 0 ? off : [{ check, severity: 'ok', code: 'DURABLE', facts: {} }]
}

function clock({ clock: read }: DoctorFacts, { clockSkewMs }: DoctorLimits): readonly JudgedFinding[] {
  // It was read somewhere between the two: only what lies outside of them is known to be wrong.
  const database = read.database.getTime()
  const skewMs = Math.max(read.before.getTime() - database, database - read.after.getTime(), 0)
  return skewMs > clockSkewMs
    ? [{ check: 'clock', severity: 'warning', code: 'CLOCK_SKEW', facts: { skewMs } }]
    : [{ check: 'clock', severity: 'ok', code: 'CLOCKS_AGREE', facts: { skewMs } }]
}
