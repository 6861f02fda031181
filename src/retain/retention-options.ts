import type { Catalogue } from '../event/catalogue.ts'
import { sensitivePaths } from '../event/event-spec.ts'
import type { Masking } from '../event/masking.ts'
import {
  booleanProblem,
  isRecord,
  oneOfProblem,
  patternListProblem,
  recordProblem,
  shown,
  storedNameProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { RetentionPace, RetentionRequest } from '../store/retention-store.ts'

/** What becomes of the events of a stream that everybody is done with. */
export interface RetentionPolicy {
  /** Its name: runs by schedule are recorded as `policy:<name>`. */
  readonly name: string
  /** A stream, or a pattern as subscriptions take them: `shop.*`. Where two policies name a stream, the first counts. */
  readonly stream: string
  /** An event stays for so many days after its last delivery was done. */
  readonly keepDays: number
  /** Whether it is deleted then, or moved to `archive`. */
  readonly action: 'delete' | 'archive'
  /** The table of the archive. It is made unless it is there. */
  readonly archive?: {
    readonly schema: string
    readonly table: string
  }
  /**
   * True masks in the archive what the catalogue hides from audits, and leaves events of types that it does not know
   * where they are. False keeps the full trail.
   * @default true, or false where the outbox says `sensitive: { audit: 'keep' }`
   */
  readonly mask?: boolean
  /**
   * True lets go only what a verified export has.
   * @default false
   */
  readonly requireExport?: boolean
}

/** How long events are kept, and how they go. */
export interface RetentionOptions {
  readonly policies: readonly RetentionPolicy[]
  /**
   * Workers begin each day at this hour, UTC; the first that runs after it, if none did.
   * @default 3
   */
  readonly hour?: number
  /**
   * How many positions one transaction looks at.
   * @default 1_000
   */
  readonly batchSize?: number
  /**
   * The shortest pause between two of them, in milliseconds.
   * @default 50
   */
  readonly pauseMs?: number
  /**
   * The share of the time that it may work, more than 0 to 1: after a batch it pauses for as long as that takes.
   * @default 0.2
   */
  readonly share?: number
}

/** Retention options with every default filled in, as the store takes them. */
export interface ResolvedRetention {
  readonly requests: readonly RetentionRequest[]
  readonly hour: number
  readonly pace: RetentionPace
}

const OPTION_NAMES: readonly (keyof RetentionOptions)[] = [
  'policies',
  'hour',
  'batchSize',
  'pauseMs',
  'share',
]

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const LONGEST_DAYS = 36_525
const LARGEST_BATCH = 10_000
const LONGEST_PAUSE_MS = 60_000
const LONGEST_IDENTIFIER_BYTES = 63
const DAY_SECONDS = 86_400

type Problems = readonly (string | null)[]

/** What is wrong with retention options, all of it. */
export function retentionProblems(options: unknown): Problems {
  if (options === undefined) return []
  if (!isRecord(options)) return [recordProblem('retention', options)]
  const { policies, hour, batchSize, pauseMs, share } = options
  const isShare = share === undefined || (typeof share === 'number' && share > 0 && share <= 1)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES).map((problem) => `retention: ${problem}`),
    ...policyListProblems(policies),
    wholeNumberProblem('retention.hour', hour, 0, 23),
    wholeNumberProblem('retention.batchSize', batchSize, 1, LARGEST_BATCH),
    wholeNumberProblem('retention.pauseMs', pauseMs, 0, LONGEST_PAUSE_MS),
    isShare ? null : `retention.share must be a number above 0, up to 1, but is ${shown(share)}`,
  ]
}

function policyListProblems(policies: unknown): Problems {
  if (!Array.isArray(policies) || policies.length === 0) {
    return [`retention.policies must be a list of at least one policy, but is ${shown(policies)}`]
  }
  const names = policies.map((policy: unknown) => (isRecord(policy) ? policy['name'] : undefined))
  return policies.flatMap((policy: unknown, index) => [
    ...policyProblems(policy, `retention.policies[${index}]`),
    names.indexOf(names[index]) === index || names[index] === undefined
      ? null
      : `retention.policies[${index}].name is that of another policy: ${shown(names[index])}`,
  ])
}

const POLICY_NAMES: readonly (keyof RetentionPolicy)[] = [
  'name',
  'stream',
  'keepDays',
  'action',
  'archive',
  'mask',
  'requireExport',
]

function policyProblems(policy: unknown, at: string): Problems {
  if (!isRecord(policy)) return [recordProblem(at, policy)]
  const { name, stream, keepDays, action, archive, mask } = policy
  const isNamed = typeof name === 'string' && NAME.test(name)
  return [
    ...unknownOptionProblems(policy, POLICY_NAMES).map((problem) => `${at}: ${problem}`),
    isNamed
      ? null
      : `${at}.name must be 1 to 100 letters, digits, dots, dashes or underscores, but is ${shown(name)}`,
    patternListProblem(`${at}.stream`, [stream]) === null
      ? null
      : `${at}.stream must be a stream name or pattern, but is ${shown(stream)}`,
    wholeNumberProblem(`${at}.keepDays`, keepDays ?? null, 0, LONGEST_DAYS),
    oneOfProblem(`${at}.action`, action ?? null, ['delete', 'archive']),
    ...archiveProblems(archive, action, `${at}.archive`),
    booleanProblem(`${at}.mask`, mask),
    mask !== undefined && action === 'delete' ? `${at}.mask is for archives: nothing is kept here` : null,
    booleanProblem(`${at}.requireExport`, policy['requireExport']),
  ]
}

function archiveProblems(archive: unknown, action: unknown, at: string): Problems {
  if (action !== 'archive') {
    return archive === undefined ? [] : [`${at} is for policies that archive: this one does not`]
  }
  if (!isRecord(archive)) return [`${at} must be { schema, table }, but is ${shown(archive)}`]
  return [
    ...unknownOptionProblems(archive, ['schema', 'table']).map((problem) => `${at}: ${problem}`),
    identifierProblem(`${at}.schema`, archive['schema']),
    identifierProblem(`${at}.table`, archive['table']),
  ]
}

function identifierProblem(at: string, name: unknown): string | null {
  const problem = storedNameProblem(at, name ?? null, LONGEST_IDENTIFIER_BYTES)
  if (problem !== null || typeof name !== 'string') return problem
  // Longer ones are cut by the database without a word, which would make two tables one.
  return Buffer.byteLength(name) <= LONGEST_IDENTIFIER_BYTES
    ? null
    : `${at} must be at most ${LONGEST_IDENTIFIER_BYTES} bytes, ${shown(name)} is longer`
}

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveRetention(
  options: RetentionOptions,
  catalogue: Catalogue,
  masking: Masking,
): ResolvedRetention {
  const { policies, hour = 3, batchSize = 1_000, pauseMs = 50, share = 0.2 } = options
  const requests = policies.map((policy, index) =>
    requestOf(
      policy,
      policies.slice(0, index).map(({ stream }) => stream),
      catalogue,
      masking,
    ),
  )
  return { requests, hour, pace: { batchSize, pauseMs, share } }
}

function requestOf(
  policy: RetentionPolicy,
  before: readonly string[],
  catalogue: Catalogue,
  masking: Masking,
): RetentionRequest {
  const { name, stream, keepDays, archive = null, requireExport = false } = policy
  const mask = policy.mask ?? !masking.keeps('audit')
  return {
    policy: name,
    stream,
    before,
    keepSeconds: keepDays * DAY_SECONDS,
    archive: archive === null ? null : { schema: archive.schema, table: archive.table },
    mask: archive !== null && mask ? maskOf(catalogue) : null,
    requireExport,
  }
}

function maskOf(catalogue: Catalogue): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    catalogue.events.map((spec) => [spec.storedAs, sensitivePaths(spec, 'audit')] as const),
  )
}
