import type { StoredType, XminHolder } from '../store/doctor-facts.ts'
import type { FindingCode, FindingFacts, JudgedFinding } from './finding.ts'
import type { Wording } from './wording.ts'

/** What a finding means, and what to do about it; null where nothing is to be done. */
export interface FindingText {
  readonly message: string
  readonly advice: string | null
}

/** The text of every finding, in one language. */
export type FindingTexts = {
  readonly [Code in FindingCode]: (facts: FindingFacts[Code], wording: Wording) => FindingText
}

/** The text of a finding. */
export function findingText(finding: JudgedFinding, texts: FindingTexts, wording: Wording): FindingText {
  // The dictionary has for each code a function of the facts of that code.
  const say = texts[finding.code] as (facts: JudgedFinding['facts'], wording: Wording) => FindingText
  return say(finding.facts, wording)
}

const fine = (message: string): FindingText => ({ message, advice: null })

/** A name as SQL takes a text. */
export function quoted(name: string | null): string {
  return `'${(name ?? '').replaceAll("'", "''")}'`
}

/** Megabytes, for a person. */
export function megabytes(bytes: number, { count }: Wording): string {
  return `${count(Math.round(bytes / 1_048_576))} MB`
}

const STATES = { missing: 'not installed', behind: 'too old', ahead: 'too new', current: 'current' } as const

const DURABILITY_ADVICE: Readonly<Record<string, string>> = {
  fsync: 'Switch it on in postgresql.conf: after a crash of the machine the whole database may be unusable.',
  full_page_writes:
    'Switch it on in postgresql.conf: a page half written in a crash cannot be repaired without.',
  synchronous_commit:
    'Publishing and workers raise it by themselves. What handlers commit and operators decide may be forgotten in a crash. Take the setting off their roles to avoid it.',
}

const HOLDER_ADVICE: Readonly<Record<XminHolder['kind'], (holder: XminHolder) => string>> = {
  session: ({ pid }) => `Let it end its transaction, or end it: select pg_terminate_backend(${pid})`,
  prepared: ({ name }) => `If nobody will finish it: rollback prepared ${quoted(name)}`,
  slot: ({ name }) => `If nobody reads it any more: select pg_drop_replication_slot(${quoted(name)})`,
  standby: () => 'See what runs on the standby, or switch its hot_standby_feedback off.',
}

/** Findings in English. */
export const findingTexts: FindingTexts = {
  SCHEMA_CURRENT: ({ version }) => fine(`The tables are at version ${version}, as this program needs.`),
  SCHEMA_NOT_CURRENT: ({ state, found, needed }) => ({
    message: `The schema is ${STATES[state]}: ${found === null ? 'no version' : `version ${found}`}, and this program needs ${needed}. Nothing that needs the tables was looked at.`,
    advice: state === 'ahead' ? 'Upgrade the package commitpost here.' : 'Run: commitpost migrate up',
  }),
  SCHEMA_CHANGED: ({ steps }) => ({
    message: `Steps of the schema were applied with another text than they have now: ${steps.join(', ')}.`,
    advice: 'Find out who edited an applied step, and compare the schema with a new one.',
  }),
  OBJECTS_SOUND: () => fine('All indexes and triggers are there and work.'),
  OBJECT_BROKEN: ({ kind, name, problem, table }) => ({
    message: `The ${kind} ${name} is ${problem}.`,
    advice:
      kind === 'index'
        ? `Make it again: commitpost migrate sql prints its definition${problem === 'invalid' ? '; drop it first' : ''}.`
        : problem === 'disabled'
          ? `Switch it on (alter table ${table} enable trigger ${name}), then run commitpost verify: what was written meanwhile was not checked.`
          : 'Make it again: commitpost migrate sql prints its definition. Then run commitpost verify.',
  }),
  RIGHTS_SOUND: () => fine('Nobody has rights that no role of Commitpost needs.'),
  RIGHT_SURPLUS: ({ role, right, object }) => ({
    message: `${role === 'public' ? 'Everybody' : `Role ${role}`} may ${right} on ${object}.`,
    advice: `Take it back: revoke ${right} on ${object.endsWith(')') ? 'function ' : ''}${object} from ${role}. commitpost roles sql prints the rights each role needs.`,
  }),
  TABLES_UNREADABLE: ({ tables }) => ({
    message: `The connected role may not read ${tables.join(', ')}.`,
    advice: 'Run it with the role of a viewer: commitpost roles sql prints how to make one.',
  }),
  TABLES_LEAN: () => fine('No table is swollen.'),
  DEAD_TUPLES: ({ table, deadTuples, liveTuples, lastVacuum }, { count, time }) => ({
    message: `${table} has ${count(deadTuples)} dead rows beside ${count(liveTuples)} live ones; last vacuum: ${lastVacuum === null ? 'never' : time(lastVacuum)}.`,
    advice: `See who holds the horizon (check xmin), then: vacuum ${table}. If it comes back, let autovacuum run more often.`,
  }),
  BLOAT: ({ table, bytes, wastedBytes }, wording) => ({
    message: `About ${megabytes(wastedBytes, wording)} of the ${megabytes(bytes, wording)} of ${table} hold nothing (an estimate).`,
    advice: 'It is used again for new rows. To give it back: pg_repack, or vacuum full while nothing runs.',
  }),
  AUTOVACUUM_OFF: ({ table }) => ({
    message: `Autovacuum is switched off for ${table}.`,
    advice: `Switch it on: alter table ${table} reset (autovacuum_enabled), and autovacuum = on for the server.`,
  }),
  PARTITIONS_AHEAD: ({ madeUntil }, { time }) =>
    fine(`There are partitions for all up to ${time(madeUntil)}.`),
  PARTITIONS_SHORT: ({ madeUntil }, { time }) => ({
    message: `There are partitions up to ${time(madeUntil)} only: what is published from then on is refused.`,
    advice:
      'Workers make them: see that one runs, and what it says of partitions. By hand: commitpost migrate partition.',
  }),
  PARTITIONS_MISSING: ({ partitions }) => ({
    message: `Partitions are gone or detached: ${nameList(partitions)}. What was in them is not seen by anybody, and what is published for their time is refused.`,
    advice:
      'Make or attach them again: docs/partitions.md, "A partition that is gone". Then run commitpost verify.',
  }),
  PARTITIONS_UNEXPECTED: ({ partitions }) => ({
    message: `Partitions that Commitpost did not make: ${nameList(partitions)}. They may stand in the way of those that workers make ahead.`,
    advice: 'Find out who attached them. See what they hold, and detach them.',
  }),
  PARTITIONING_UNFINISHED: ({ madeUntil }, { time }) => ({
    message: `Somebody began to partition the tables and has not finished. Until then ids of ${time(madeUntil)} and later are refused.`,
    advice:
      'Finish it: commitpost migrate partition. If nobody does, workers undo it an hour before that time.',
  }),
  XMIN_FREE: () => fine('Nobody keeps the server from cleaning up for long.'),
  XMIN_HELD: (holder, wording) => ({
    message: `${holderText(holder)} keeps the server from cleaning up: ${wording.count(holder.transactions)} transactions ago${holder.seconds === null ? '' : `, for ${wording.age(holder.seconds)}`}.${holder.query === null ? '' : ` Its last statement: ${holder.query}`}`,
    advice: HOLDER_ADVICE[holder.kind](holder),
  }),
  SESSIONS_HIDDEN: () => ({
    message: 'The connected role is not told since when other sessions hold a snapshot.',
    advice: 'grant pg_read_all_stats to it.',
  }),
  DURABLE: () => fine('What is committed is on disk.'),
  NOT_DURABLE: ({ setting, value }) => ({
    message: `${setting} is ${value}.`,
    advice: DURABILITY_ADVICE[setting] ?? null,
  }),
  CLOCKS_AGREE: () => fine("This machine's clock and the database's agree."),
  CLOCK_SKEW: ({ skewMs }, { count }) => ({
    message: `This machine's clock and the database's are at least ${count(Math.round(skewMs))} ms apart.`,
    advice: 'Set up NTP on both. Leases go by the database alone; times in logs and of events do not.',
  }),
  LEASES_SOUND: () => fine('No lease has lapsed and been left.'),
  LEASES_LAPSED: ({ subscription, count, seconds }, wording) => ({
    message: `Subscription ${subscription}: ${wording.count(count)} leases lapsed and were not taken back, the oldest ${wording.age(seconds)} ago.`,
    advice:
      'Start a worker that serves it. If one runs, see its log: it cannot reach the database or is blocked.',
  }),
  NONE_PAUSED: () => fine('No subscription is paused.'),
  PAUSED: ({ subscription, by, at }, { time }) => ({
    message: `Subscription ${subscription} is paused, by ${by}, since ${time(at)}.`,
    advice: `When the reason is gone: commitpost resume ${subscription} --operator NAME`,
  }),
  TYPES_KNOWN: () => fine('The catalogue knows the types of the newest events.'),
  TYPES_NOT_COMPARED: () => fine('No catalogue was given to compare the types of events with (--config).'),
  TYPES_UNKNOWN: ({ types }, { count }) => ({
    message: `Types that the catalogue does not know, among the newest events: ${typeList(types, count)}.`,
    advice:
      'Add them to the catalogue, or find out who publishes them. A worker without them sets them aside as dead letters.',
  }),
  ALL_SERVED: () => fine('Every subscription is served by a live worker.'),
  NO_WORKER: ({ subscription, hasPending }) => ({
    message: `No live worker serves subscription ${subscription}${hasPending ? ', and events wait' : ''}.`,
    advice: `Start one. If no code has it any more: commitpost retire ${subscription} --operator NAME`,
  }),
}

function holderText({ kind, name, pid }: XminHolder): string {
  const named = name === null ? '' : ` "${name}"`
  const texts = {
    session: `Process ${pid}${named === '' ? '' : ` (${named.trim()})`}`,
    prepared: `The prepared transaction${named}`,
    slot: `The replication slot${named}`,
    standby: `The standby${named}`,
  }
  return texts[kind]
}

const MOST_NAMES = 20

/** Names, cut where there are very many. */
export function nameList(names: readonly string[]): string {
  return [...names.slice(0, MOST_NAMES), ...(names.length > MOST_NAMES ? ['…'] : [])].join(', ')
}

/** Types of events with how many there are, cut where there are very many. */
export function typeList(types: readonly StoredType[], count: Wording['count']): string {
  return nameList(types.map((type) => `${type.eventType} (${type.stream}, ${count(type.count)})`))
}
