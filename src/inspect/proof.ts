import { createMasking, type MaskedEvent, type Masking } from '../event/masking.ts'
import { isUuid } from '../runtime/ids.ts'
import { refuseProblems, shown } from '../runtime/option-checks.ts'
import type { ArchivedEvent, TracedEvent, TracedLetter } from '../store/event-trace.ts'
import type { AuditReport, ProofStore, VerifyReport } from '../store/proof-store.ts'
import { type DoctorOptions, doctorLimits } from './doctor-options.ts'
import type { Finding, JudgedFinding, Severity } from './finding.ts'
import type { Reason } from './reason.ts'
import { type VerifyOptions, verifyRequest } from './verify-options.ts'
import { plainWording } from './wording.ts'

/** What `doctor` found, in the order of its checks. */
export interface DoctorReport {
  /** The worst of all. */
  readonly severity: Severity
  readonly findings: readonly Finding[]
}

/** How an event stands with one subscription. */
export interface SubscriptionReason {
  readonly subscription: string
  readonly reason: Reason
  /** The reason in English. */
  readonly sentence: string
}

/** Why an event is not delivered yet, or that it is. */
export interface WhyReport {
  readonly eventId: string
  /** Null where there is no such event. One whose transaction has not committed looks the same from outside. */
  readonly event: TracedEvent | null
  /** One for each subscription that is not retired, and for those that have a delivery of it. */
  readonly subscriptions: readonly SubscriptionReason[]
  /** True where the event is there and no subscription takes it. */
  readonly unmatched: boolean
  /** Where the event is gone because retention archived it: which archive has it, and who had got it. */
  readonly archived: ArchivedEvent | null
  /** Where the event is gone: the dead letters that outlived it. */
  readonly letters: readonly (TracedLetter & { readonly subscription: string })[]
}

/** The proof that nothing is lost, and answers to "where is it?". Nothing here changes anything. */
export interface Proof {
  /**
   * For every subscription: matched = done + pending + processing + dead + archived + streamed, exactly, at one instant,
   * and the ids where it does not hold.
   * @throws NotFoundError where there is no subscription of the name that is asked for.
   */
  verify(options?: VerifyOptions): Promise<VerifyReport>
  /** Looks at everything that can be wrong with the server, the tables and the workers. */
  doctor(options?: DoctorOptions): Promise<DoctorReport>
  /** Why an event is not delivered yet, for each subscription. */
  why(eventId: string): Promise<WhyReport>
  /** Follows the chains of the operator log and of the exports, and names the first link of each that does not hold. */
  audit(): Promise<AuditReport>
}

/**
 * The proof of a store. `knownTypes` tells the types of the catalogue, as stored; null where there is none. Errors are
 * quoted as `masking` leaves them for the dashboard; without one, no value of a payload is.
 */
export function createProof(
  store: ProofStore,
  knownTypes: () => readonly string[] | null,
  masking: Masking = createMasking(null),
): Proof {
  return {
    verify: async (options = {}) => store.verify(verifyRequest(options)),
    doctor: async (options = {}) => {
      const limits = doctorLimits(options)
      const facts = await store.doctorFacts(limits)
      const { examine } = await import('./examine.ts')
      return reportOf(examine(facts, limits, options.eventTypes ?? knownTypes()))
    },
    why: async (eventId) => {
      refuseProblems('why', [
        isUuid(eventId)
          ? null
          : `the event id must be a UUID, as publish returns it, but is ${shown(eventId)}`,
      ])
      return whyReport(store, masking, eventId)
    },
    audit: () => store.verifyChains(),
  }
}

async function reportOf(judged: readonly JudgedFinding[]): Promise<DoctorReport> {
  const { findingText, findingTexts } = await import('./finding-texts.ts')
  const severities = new Set(judged.map(({ severity }) => severity))
  const worst = (['problem', 'warning'] as const).find((severity) => severities.has(severity))
  return {
    severity: worst ?? 'ok',
    findings: judged.map((finding) => ({ ...finding, ...findingText(finding, findingTexts, plainWording) })),
  }
}

async function whyReport(store: ProofStore, masking: Masking, eventId: string): Promise<WhyReport> {
  const { reasonOf } = await import('./reason-of.ts')
  const { reasonTexts, sentenceOf } = await import('./reason-texts.ts')
  const { event, payload, subscriptions, archived, letters, waitsFor } = await store.traceEvent(eventId)
  const about = { type: event?.eventType ?? '', payload }
  const reasons = subscriptions.map((trace) => {
    const reason = masked(reasonOf(trace, waitsFor), about, masking)
    return {
      subscription: trace.subscription,
      reason,
      sentence: sentenceOf(reason, reasonTexts, plainWording),
    }
  })
  const unmatched = event !== null && reasons.every(({ reason }) => reason.kind === 'not-taken')
  return { eventId: eventId.toLowerCase(), event, subscriptions: reasons, unmatched, archived, letters }
}

function masked(reason: Reason, event: MaskedEvent, masking: Masking): Reason {
  if (!('errorMessage' in reason) || reason.errorMessage === null) return reason
  return { ...reason, errorMessage: masking.text(reason.errorMessage, event, 'dashboard') }
}
