import type { DeliveryStatus } from '../delivery/delivery.ts'
import type { DoctorFacts, DoctorLimits } from './doctor-facts.ts'
import type { EventTrace } from './event-trace.ts'

/** Which part of the outbox is verified. */
export interface VerifyRequest {
  /** From the first event published at or after it; null from the beginning. */
  readonly since: Date | null
  /** Up to the last event published before it; null to the end. */
  readonly until: Date | null
  /** One subscription by name; null all of them. */
  readonly subscription: string | null
  /** At most so many ids of each kind. */
  readonly most: number
}

/** Events that break the equation: how many, and the first of them. */
export interface ProofExceptions {
  readonly count: number
  readonly eventIds: readonly string[]
}

/** The equation of one subscription: matched = done + pending + processing + dead + archived + streamed. */
export interface SubscriptionProof {
  /** Its name; where it is `removed`, `#` and its number. */
  readonly subscription: string
  /** `removed`: somebody deleted its row by force. What was meant for it reaches nobody, and its equation never holds. */
  readonly state: 'joining' | 'active' | 'retired' | 'removed'
  /** Events that it is meant to have. */
  readonly matched: number
  /** Its deliveries by state. */
  readonly counts: Readonly<Record<DeliveryStatus, number>>
  /** Those that were moved to an archive. */
  readonly archived: number
  /** Of one that reads the log: those that were handled there, and so have no delivery. */
  readonly streamed: number
  /**
   * While it is joining: events that its sweep has still to bring. Of one that reads the log: events that are not
   * recorded as handled yet. They are not among `matched` yet.
   */
  readonly awaited: number
  readonly holds: boolean
  /** Events that it is meant to have, without a delivery. */
  readonly missing: ProofExceptions
  /** Deliveries without an event, or of an event that it is not meant to have. */
  readonly surplus: ProofExceptions
  /**
   * Deliveries in a state that they cannot have come to: DONE or PROCESSING without an attempt, PROCESSING without a
   * lease, PENDING after an attempt as if there had been none, DEAD without a dead letter, a dead letter that waits for a
   * person although its delivery is not DEAD, any state at all where the subscription was removed.
   */
  readonly impossible: ProofExceptions
}

/** What `verify` found, all of it at one instant. */
export interface VerifyReport {
  readonly holds: boolean
  /** The instant, by the database's clock. */
  readonly at: Date
  readonly since: Date | null
  readonly until: Date | null
  readonly subscriptions: readonly SubscriptionProof[]
}

/** The first link of a chain that does not hold. */
export interface BrokenLink {
  /** The number of the entry in the chain. */
  readonly entry: string
  /** Its id in `outbox_operator_log` or `outbox_export`; null where the entry is not there. */
  readonly id: string | null
  /**
   * `changed`: its columns do not give its hash. `unlinked`: it does not carry the hash of the one before. `missing`: it
   * is not there, and later ones are. `cut-off`: it is not there, nor is any later one. `added`: it stands after the
   * end of the chain.
   */
  readonly problem: 'changed' | 'unlinked' | 'missing' | 'cut-off' | 'added'
}

/** What became of following a chain. */
export interface ChainReport {
  readonly holds: boolean
  /** How many entries there are. */
  readonly entries: number
  /** The hash of the last link that holds: written down elsewhere, it proves later that nothing before it was changed. */
  readonly hash: string
  readonly broken: BrokenLink | null
}

/** What became of following the chain of the operator log, and beside it that of the exports. */
export interface AuditReport extends ChainReport {
  /** Whether both hold. */
  readonly holds: boolean
  readonly exports: ChainReport
}

/** The proof that nothing is lost, and what stands in the way of an event. All of it only reads. */
export interface ProofStore {
  /** @throws NotFoundError where there is no subscription of that name. */
  verify(request: VerifyRequest): Promise<VerifyReport>
  /** What a look at the server and the tables comes to; without judgement. */
  doctorFacts(limits: DoctorLimits): Promise<DoctorFacts>
  /** What is known of an event and of its way to every subscription, at a bounded cost. */
  traceEvent(eventId: string): Promise<EventTrace>
  /** Follows the chains of the operator log and of the exports, each from its first entry to its last. */
  verifyChains(): Promise<AuditReport>
}
