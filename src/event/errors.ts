import { CommitpostError } from '../runtime/errors.ts'

/** What kind of thing is wrong with an event that was to be published. */
export type EventProblemCode =
  | 'INVALID_EVENT'
  | 'UNKNOWN_EVENT_TYPE'
  | 'EVENT_REFUSED'
  | 'PAYLOAD_INVALID'
  | 'PAYLOAD_NOT_STORABLE'
  | 'PAYLOAD_TOO_LARGE'

/** One thing wrong with one event. Messages never quote values of fields declared sensitive. */
export interface EventProblem {
  readonly code: EventProblemCode
  /** Where it is: `payload.items[3].price`, `aggregateId`, `headers.market`. */
  readonly path: string
  readonly message: string
  /** Which event of a batch, counted from 0; absent outside a batch. */
  readonly index?: number
}

/**
 * An event that cannot be published as given. Nothing was written; `problems` lists everything wrong with all events
 * of the call. `code` is the problems' own code, or `INVALID_EVENT` where they differ.
 */
export class InvalidEventError extends CommitpostError {
  readonly problems: readonly EventProblem[]

  /** `what` names the event or the batch: `event "OrderPlaced"`. */
  constructor(what: string, problems: readonly EventProblem[], options?: ErrorOptions) {
    const lines = problems.map((problem) => `- ${placeOf(problem)}: ${problem.message}`)
    super(commonCode(problems), `Nothing was written. Invalid ${what}:\n${lines.join('\n')}`, options)
    this.problems = problems
  }
}

/** Where a problem is: its path, after its number where it is one of a batch. */
export function placeOf(problem: EventProblem): string {
  return problem.index === undefined ? problem.path : `[${problem.index}] ${problem.path}`
}

function commonCode(problems: readonly EventProblem[]): EventProblemCode {
  const [first, ...rest] = problems
  if (first === undefined || rest.some((problem) => problem.code !== first.code)) return 'INVALID_EVENT'
  return first.code
}

/** One complaint of a schema, in a form that is safe to log. */
export interface PayloadIssue {
  /** `payload.items[3].price` */
  readonly path: string
  readonly message: string
}

/** Which stored event could not be read. */
export interface UnreadableEvent {
  readonly eventId: string
  readonly type: string
  /** The version it was stored with. */
  readonly storedVersion: number
  /** The version this code knows. */
  readonly knownVersion: number
}

/**
 * A stored event that this code cannot read: its payload does not fit the schema (`PAYLOAD_INVALID`), or could not be
 * brought to the current version (`UPCAST_FAILED`). Trying again with the same code cannot help.
 */
export class UnreadablePayloadError extends CommitpostError {
  readonly event: UnreadableEvent
  readonly issues: readonly PayloadIssue[]
  /** True when the event was written by newer code than this: other processes may well be able to read it. */
  readonly newerThanCode: boolean

  constructor(
    code: 'PAYLOAD_INVALID' | 'UPCAST_FAILED',
    event: UnreadableEvent,
    issues: readonly PayloadIssue[],
    options?: ErrorOptions,
  ) {
    const newer = event.storedVersion > event.knownVersion
    const versions = `version ${event.storedVersion}, this code knows version ${event.knownVersion}`
    const what = code === 'UPCAST_FAILED' ? 'could not be upcast' : 'has a payload that its schema refuses'
    const advice = newer ? ' It is newer than this code: deploy the new version here too.' : ''
    const lines = issues.map((issue) => `- ${issue.path}: ${issue.message}`)
    super(
      code,
      `Event ${event.eventId} (${event.type}, ${versions}) ${what}:\n${lines.join('\n')}${advice}`,
      options,
    )
    this.event = event
    this.issues = issues
    this.newerThanCode = newer
  }
}
