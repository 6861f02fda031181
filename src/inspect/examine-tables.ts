import type { DoctorLimits, TableFacts, TablesFacts } from '../store/doctor-facts.ts'
import type { JudgedFinding } from './finding.ts'

/** Judges indexes, triggers, rights, sizes and partitions. */
export function examineTables(facts: TablesFacts, limits: DoctorLimits): readonly JudgedFinding[] {
  return [...objects(facts), ...rights(facts), ...sizes(facts, limits), ...partitions(facts)]
}

function objects({ broken }: TablesFacts): readonly JudgedFinding[] {
  const check = 'objects'
  if (broken.length === 0) return [{ check, severity: 'ok', code: 'OBJECTS_SOUND', facts: {} }]
  return broken.map((object) => ({ check, severity: 'problem', code: 'OBJECT_BROKEN', facts: object }))
}

function rights({ surplusRights, unreadable }: TablesFacts): readonly JudgedFinding[] {
  const check = 'rights'
  const found: JudgedFinding[] = surplusRights.map((right) => ({
    check,
    severity: right.role === 'public' ? 'problem' : 'warning',
    code: 'RIGHT_SURPLUS',
    facts: right,
  }))
  if (unreadable.length > 0) {
    found.push({ check, severity: 'problem', code: 'TABLES_UNREADABLE', facts: { tables: unreadable } })
  }
  return found.length > 0 ? found : [{ check, severity: 'ok', code: 'RIGHTS_SOUND', facts: {} }]
}

const DEAD_SHARE = 0.2
const WASTED_SHARE = 0.5

function sizes({ sizes: tables }: TablesFacts, limits: DoctorLimits): readonly JudgedFinding[] {
  const found = tables.flatMap((table) => sizeFindings(table, limits))
  return found.length > 0 ? found : [{ check: 'bloat', severity: 'ok', code: 'TABLES_LEAN', facts: {} }]
}

function sizeFindings(facts: TableFacts, limits: DoctorLimits): readonly JudgedFinding[] {
  const check = 'bloat'
  const { table, deadTuples, liveTuples, lastVacuum, bytes, wastedBytes, autovacuum } = facts
  const found: JudgedFinding[] = []
  if (!autovacuum) found.push({ check, severity: 'problem', code: 'AUTOVACUUM_OFF', facts: { table } })
  if (deadTuples > limits.deadTuples && deadTuples > liveTuples * DEAD_SHARE) {
    const told = { table, deadTuples, liveTuples, lastVacuum }
    found.push({ check, severity: 'warning', code: 'DEAD_TUPLES', facts: told })
  }
  if (wastedBytes !== null && wastedBytes > limits.bloatBytes && wastedBytes > bytes * WASTED_SHARE) {
    found.push({ check, severity: 'warning', code: 'BLOAT', facts: { table, bytes, wastedBytes } })
  }
  return found
}

function partitions({ partitions: facts }: TablesFacts): readonly JudgedFinding[] {
  const check = 'partitions'
  if (facts === null) return []
  const { state, everyDays, madeUntil, daysAhead, missing, unexpected } = facts
  const told = { madeUntil, daysAhead }
  if (state === 'preparing')
    return [{ check, severity: 'warning', code: 'PARTITIONING_UNFINISHED', facts: told }]
  const found: JudgedFinding[] = []
  if (daysAhead < everyDays) found.push({ check, severity: 'problem', code: 'PARTITIONS_SHORT', facts: told })
  if (missing.length > 0)
    found.push({ check, severity: 'problem', code: 'PARTITIONS_MISSING', facts: { partitions: missing } })
  if (unexpected.length > 0)
    found.push({
      check,
      severity: 'warning',
      code: 'PARTITIONS_UNEXPECTED',
      facts: { partitions: unexpected },
    })
  return found.length > 0 ? found : [{ check, severity: 'ok', code: 'PARTITIONS_AHEAD', facts: told }]
}
