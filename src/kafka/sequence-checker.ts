import type { OutboxEvent } from '../event/event.ts'
import {
  booleanProblem,
  functionProblem,
  refuseProblems,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'

/** What a sequence checker needs to know of an event. */
export type NumberedEvent = Pick<OutboxEvent, 'eventId' | 'orderingKey' | 'sequence'>

/** What the number of an event says about those before it. */
export type SequenceFinding =
  /** The first of its key that was seen here: nothing can be said about those before it. */
  | { readonly kind: 'first' }
  | { readonly kind: 'next' }
  /** Seen before, or older than one that was: a redelivery. */
  | {
      readonly kind: 'repeat'
      readonly orderingKey: string
      readonly eventId: string
      readonly sequence: number
      readonly last: number
    }
  /** Numbers between the last one and this one were not seen. */
  | {
      readonly kind: 'gap'
      readonly orderingKey: string
      readonly eventId: string
      readonly sequence: number
      readonly missingFrom: number
      readonly missingTo: number
    }
  /** Its type keeps no sequence. */
  | { readonly kind: 'unnumbered' }

/** How many of each were found. */
export type SequenceCounts = Readonly<Record<SequenceFinding['kind'], number>>

/** What a sequence checker is made of. */
export interface SequenceCheckerOptions {
  /**
   * True expects each key to begin with 1: what was published before this consumer began counts as a gap.
   * @default false
   */
  readonly fromBeginning?: boolean
  /**
   * Of how many keys the last number is kept. The key that was not seen for the longest time is forgotten first, and
   * begins anew.
   * @default 100_000
   */
  readonly maxKeys?: number
  /** Told of each gap and each repeat. */
  readonly onFinding?: (finding: Extract<SequenceFinding, { readonly kind: 'gap' | 'repeat' }>) => void
}

/** Verifies that the numbers of each ordering key come one after the other. */
export interface SequenceChecker {
  /** Takes note of an event that arrived, and tells what its number says. */
  check(event: NumberedEvent): SequenceFinding
  /** What was found so far. */
  readonly counts: SequenceCounts
  /** The last number of a key; null where none was seen. */
  last(orderingKey: string): number | null
}

const DEFAULT_MAX_KEYS = 100_000
const OPTION_NAMES: readonly (keyof SequenceCheckerOptions)[] = ['fromBeginning', 'maxKeys', 'onFinding']

/** Makes a sequence checker. It is for one consumer of all events of its keys: where types are left out, there are gaps. */
export function sequenceChecker(options: SequenceCheckerOptions = {}): SequenceChecker {
  refuseProblems('sequenceChecker', [
    ...unknownOptionProblems(options, OPTION_NAMES),
    booleanProblem('fromBeginning', options.fromBeginning),
    wholeNumberProblem('maxKeys', options.maxKeys, 1, Number.MAX_SAFE_INTEGER),
    functionProblem('onFinding', options.onFinding),
  ])
  return new KeyedChecker(options)
}

class KeyedChecker implements SequenceChecker {
  readonly #options: SequenceCheckerOptions
  readonly #maxKeys: number
  /** In the order in which they were last seen. */
  readonly #lastOf = new Map<string, number>()
  readonly #counts: Record<SequenceFinding['kind'], number> = {
    first: 0,
    next: 0,
    repeat: 0,
    gap: 0,
    unnumbered: 0,
  }

  constructor(options: SequenceCheckerOptions) {
    this.#options = options
    this.#maxKeys = options.maxKeys ?? DEFAULT_MAX_KEYS
  }

  get counts(): SequenceCounts {
    return { ...this.#counts }
  }

  last(orderingKey: string): number | null {
    return this.#lastOf.get(orderingKey) ?? null
  }

  check(event: NumberedEvent): SequenceFinding {
    const finding = this.#find(event)
    this.#counts[finding.kind] += 1
    if (finding.kind === 'gap' || finding.kind === 'repeat') this.#options.onFinding?.(finding)
    return finding
  }

  #find({ eventId, orderingKey, sequence }: NumberedEvent): SequenceFinding {
    if (sequence === null) return { kind: 'unnumbered' }
    const last = this.#lastOf.get(orderingKey) ?? (this.#options.fromBeginning === true ? 0 : null)
    this.#remember(orderingKey, Math.max(last ?? 0, sequence))
    if (last === null) return { kind: 'first' }
    if (sequence <= last) return { kind: 'repeat', orderingKey, eventId, sequence, last }
    if (sequence === last + 1) return { kind: 'next' }
    return {
      kind: 'gap',
      orderingKey,
      eventId,
      sequence,
      missingFrom: last + 1,
      missingTo: sequence - 1,
    }
  }

  #remember(key: string, last: number): void {
    this.#lastOf.delete(key)
    this.#lastOf.set(key, last)
    if (this.#lastOf.size <= this.#maxKeys) return
    const [oldest] = this.#lastOf.keys()
    if (oldest !== undefined) this.#lastOf.delete(oldest)
  }
}
