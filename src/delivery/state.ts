import { CommitpostError } from '../runtime/errors.ts'
import type { DeliveryFailure, DeliveryStatus, Lease, Settlement } from './delivery.ts'

/** What can happen to a delivery. Who may do what, and why: docs/state-machine.md. */
export type DeliveryTransition =
  /** A worker takes a due delivery under a lease; the attempt is counted here. */
  | 'claim'
  /** The holder keeps its lease for longer. */
  | 'extend'
  /** The handler succeeded. */
  | 'complete'
  /** The handler failed and attempts are left. */
  | 'retry'
  /** The holder gives it back without a verdict; the attempt is returned. */
  | 'release'
  /** The holder gives it back to wait behind an earlier event of its ordering key; the attempt is returned. */
  | 'park'
  /** What it waited behind is settled: it is due again. */
  | 'unpark'
  /** The lease lapsed: the holder is gone. */
  | 'recover'
  /** It failed for good: never retryable, attempts exhausted, or it crashed its worker when alone. */
  | 'die'
  /** An operator sends a dead delivery on its way again. */
  | 'redrive'
  /** An operator retires the subscription: what is open is set aside. */
  | 'discard'

/** The whole machine: which status each transition leads to, null where it is refused. Total on purpose. */
export type TransitionTable = Readonly<
  Record<DeliveryStatus, Readonly<Record<DeliveryTransition, DeliveryStatus | null>>>
>

const REFUSED = {
  claim: null,
  extend: null,
  complete: null,
  retry: null,
  release: null,
  park: null,
  unpark: null,
  recover: null,
  die: null,
  redrive: null,
  discard: null,
} as const satisfies Readonly<Record<DeliveryTransition, null>>

/** The table of docs/state-machine.md. The database's trigger holds the same one. */
export const TRANSITIONS: TransitionTable = {
  PENDING: { ...REFUSED, claim: 'PROCESSING', unpark: 'PENDING', discard: 'DEAD' },
  PROCESSING: {
    ...REFUSED,
    extend: 'PROCESSING',
    complete: 'DONE',
    retry: 'PENDING',
    release: 'PENDING',
    park: 'PENDING',
    recover: 'PENDING',
    die: 'DEAD',
    discard: 'DEAD',
  },
  DONE: REFUSED,
  DEAD: { ...REFUSED, redrive: 'PENDING' },
}

/** True if the transition is possible in this status. */
export function canTransition(from: DeliveryStatus, transition: DeliveryTransition): boolean {
  return TRANSITIONS[from][transition] !== null
}

/** True if any transition leads from one status to the other: what the database's trigger checks. */
export function canMove(from: DeliveryStatus, to: DeliveryStatus): boolean {
  return Object.values(TRANSITIONS[from]).includes(to)
}

/** The transition that writes a settlement down. */
export function transitionOf(settlement: Settlement): DeliveryTransition {
  switch (settlement.kind) {
    case 'done':
      return 'complete'
    case 'retry':
      return 'retry'
    case 'release':
      return 'release'
    case 'park':
      return 'park'
    case 'dead':
      return 'die'
    default:
      return settlement satisfies never
  }
}

/** A delivery that waits and was never failed, returned or suspected. */
export interface FreshDelivery {
  readonly status: 'PENDING'
  readonly held: false
  readonly attemptCount: number
}

/** A delivery that waits again: a retry, one given back, one parked, one re-driven, or a suspect. */
export interface HeldDelivery {
  readonly status: 'PENDING'
  readonly held: true
  readonly attemptCount: number
  /** 'parked' where it waits for an earlier event of its key instead of for a time. */
  readonly nextRetryAt: Date | 'parked'
  /** An earlier holder vanished with it in hand: it must run alone. */
  readonly suspect: boolean
  /** Null where it was given back before it ever failed. */
  readonly lastFailure: DeliveryFailure | null
}

/** A delivery in a worker's hand. */
export interface ProcessingDelivery {
  readonly status: 'PROCESSING'
  readonly attemptCount: number
  readonly lease: Lease
  readonly lockedUntil: Date
  readonly suspect: boolean
}

/** A delivery that was handled. It never moves again. */
export interface DoneDelivery {
  readonly status: 'DONE'
  readonly attemptCount: number
  readonly processedAt: Date
}

/** A delivery that failed for good. Only an operator moves it. */
export interface DeadDelivery {
  readonly status: 'DEAD'
  readonly attemptCount: number
  readonly failure: DeliveryFailure
  /** True while it keeps the later events of its ordering key waiting (`onDead: 'block'`). */
  readonly blocksKey: boolean
}

/** A delivery with exactly the facts its status has: impossible combinations cannot be written down. */
export type DeliveryState = FreshDelivery | HeldDelivery | ProcessingDelivery | DoneDelivery | DeadDelivery

/** The columns of `outbox_delivery` that make up its state, as any store reads them. */
export interface DeliveryColumns {
  readonly status: DeliveryStatus
  readonly held: boolean
  readonly suspect: boolean
  readonly attemptCount: number
  /** 'parked' stands for the infinite time that parks a delivery. */
  readonly nextRetryAt: Date | 'parked' | null
  readonly lockedBy: string | null
  readonly lockedUntil: Date | null
  readonly leaseToken: string | null
  readonly processedAt: Date | null
  readonly lastErrorCode: string | null
  readonly lastErrorMessage: string | null
}

/** The state a row is in. Throws, naming the broken invariant, for a row the database should have refused. */
export function deliveryStateOf(row: DeliveryColumns): DeliveryState {
  const broken = brokenInvariant(row)
  if (broken !== null) throw new CommitpostError('INVALID_STATE', `Impossible delivery row: ${broken}`)
  switch (row.status) {
    case 'PENDING':
      return row.held ? heldDelivery(row) : { status: 'PENDING', held: false, attemptCount: row.attemptCount }
    case 'PROCESSING':
      return {
        status: 'PROCESSING',
        attemptCount: row.attemptCount,
        lease: { token: row.leaseToken as string, workerId: row.lockedBy as string },
        lockedUntil: row.lockedUntil as Date,
        suspect: row.suspect,
      }
    case 'DONE':
      return { status: 'DONE', attemptCount: row.attemptCount, processedAt: row.processedAt as Date }
    case 'DEAD':
      return {
        status: 'DEAD',
        attemptCount: row.attemptCount,
        failure: failureOf(row) as DeliveryFailure,
        blocksKey: row.held,
      }
    default:
      return row.status satisfies never
  }
}

/** The first invariant of docs/state-machine.md that a row breaks, in words; null if it breaks none. */
export function brokenInvariant(row: DeliveryColumns): string | null {
  return brokenLease(row) ?? brokenResult(row) ?? brokenWait(row)
}

function brokenLease(row: DeliveryColumns): string | null {
  const set = [row.lockedBy, row.lockedUntil, row.leaseToken].filter((column) => column !== null).length
  const expected = row.status === 'PROCESSING' ? 3 : 0
  return set === expected ? null : `I2: ${row.status} with ${set} of the 3 lease columns set`
}

function brokenResult(row: DeliveryColumns): string | null {
  if ((row.status === 'DONE') !== (row.processedAt !== null)) {
    return `I3: ${row.status} ${row.processedAt === null ? 'without' : 'with'} processed_at`
  }
  return row.status === 'DEAD' && row.lastErrorCode === null ? 'I4: DEAD without an error code' : null
}

function brokenWait(row: DeliveryColumns): string | null {
  const waitsForATime = row.nextRetryAt !== null
  if (waitsForATime !== (row.status === 'PENDING' && row.held)) {
    return `I5: ${row.status}${row.held ? ', held,' : ''} ${waitsForATime ? 'with' : 'without'} next_retry_at`
  }
  if (row.held && (row.status === 'PROCESSING' || row.status === 'DONE')) return `I5: ${row.status} and held`
  const maySuspect = row.status === 'PENDING' || row.status === 'PROCESSING'
  return row.suspect && !maySuspect ? `I6: ${row.status} and suspect` : null
}

function heldDelivery(row: DeliveryColumns): HeldDelivery {
  return {
    status: 'PENDING',
    held: true,
    attemptCount: row.attemptCount,
    nextRetryAt: row.nextRetryAt as Date | 'parked',
    suspect: row.suspect,
    lastFailure: failureOf(row),
  }
}

function failureOf(row: DeliveryColumns): DeliveryFailure | null {
  return row.lastErrorCode === null ? null : { code: row.lastErrorCode, message: row.lastErrorMessage ?? '' }
}
