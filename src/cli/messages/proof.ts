import type { CheckName, Severity } from '../../inspect/finding.ts'
import type { FindingTexts } from '../../inspect/finding-texts.ts'
import type { ReasonTexts } from '../../inspect/reason-texts.ts'
import type { BrokenLink, SubscriptionProof } from '../../store/proof-store.ts'

/** `verify`, `why`, `doctor` and `audit verify`. */
export interface ProofMessages {
  readonly verify: VerifyMessages
  readonly why: WhyMessages
  readonly doctor: DoctorMessages
  readonly audit: AuditMessages
}

/** `verify`. */
export interface VerifyMessages {
  readonly columns: Readonly<
    Record<
      'subscription' | 'matched' | 'done' | 'pending' | 'processing' | 'dead' | 'archived' | 'streamed',
      string
    >
  >
  /** What stands above the ids of one kind. */
  readonly exceptions: Readonly<
    Record<'missing' | 'surplus' | 'impossible', (subscription: string, count: string) => string>
  >
  readonly notAllNamed: (count: string) => string
  readonly awaited: (subscription: string, count: string) => string
  /** Of one that reads the log. */
  readonly unread: (subscription: string, count: string) => string
  /** Of one whose row was deleted by force; `subscription` is its number behind "#". */
  readonly removed: (subscription: string) => string
  readonly states: Readonly<Record<SubscriptionProof['state'], string | null>>
  readonly verdict: (holds: boolean, at: string) => string
}

/** `why`. */
export interface WhyMessages {
  readonly event: (
    eventId: string,
    eventType: string,
    stream: string,
    aggregate: string,
    at: string,
  ) => string
  readonly unknown: (eventId: string) => string
  /** `subscriptions` is empty where none took it, `archive` null where it was purged from there. */
  readonly archived: (eventId: string, at: string, subscriptions: string, archive: string | null) => string
  /** A dead letter that outlived its event. */
  readonly letterRemains: (id: string, subscription: string, failedAt: string) => string
  readonly unmatched: string
  readonly reasons: ReasonTexts
}

/** `doctor`. */
export interface DoctorMessages {
  readonly severities: Readonly<Record<Severity, string>>
  readonly checks: Readonly<Record<CheckName, string>>
  readonly findings: FindingTexts
  readonly summary: (problems: string, warnings: string) => string
}

/** `audit verify`. */
export interface AuditMessages {
  readonly holds: (entries: string) => string
  readonly hash: (hash: string) => string
  readonly broken: (entry: string, id: string | null, problem: BrokenLink['problem']) => string
  readonly lastGood: (hash: string) => string
  readonly exportsHold: (entries: string) => string
  readonly exportsHash: (hash: string) => string
  readonly exportsBroken: (entry: string, id: string | null, problem: BrokenLink['problem']) => string
}
