import type { ClaimedDelivery, Settlement } from '../delivery/delivery.ts'
import { deliveryFailure, type OwnFailureCode } from '../delivery/failure.ts'
import { DONE } from '../delivery/settlements.ts'
import type { Catalogue, EventName, PayloadInput } from '../event/catalogue.ts'
import { Mutex } from '../queue/mutex.ts'
import { type Clock, leaseClock, systemClock } from '../runtime/clock.ts'
import { systemIds } from '../runtime/ids.ts'
import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import { decide } from '../settle/decide.ts'
import { type RetryPolicy, resolveRetryPolicy } from '../settle/retry-policy.ts'
import type { ClaimRequest } from '../store/queue-store.ts'
import type { WorkerStore } from '../store/store.ts'
import { closedError, retiredError } from './repository-errors.ts'
import { RepositoryHand } from './repository-hand.ts'
import { type OutboxRepositoryOptions, repositoryProblems } from './repository-options.ts'

/** One event as a repository sees it. */
export interface OutboxEntry {
  readonly id: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly eventType: string
  readonly payload: unknown
  readonly status: 'PENDING' | 'PROCESSED' | 'FAILED'
  readonly createdAt: Date
  readonly processedAt: Date | null
  /** Attempts before this one. */
  readonly retryCount: number
}

/** An event to insert. */
export interface NewOutboxEntry<C extends Catalogue, Name extends EventName<C> = EventName<C>> {
  /** @default a new UUID v7 */
  readonly id?: string
  readonly eventType: Name
  readonly aggregateId: string
  readonly payload: PayloadInput<C, Name>
}

/**
 * The outbox as a repository, over leases: `findPending` leases what it returns, and the marks settle with the
 * tokens held. For code written against that port; a worker does the same with less to get wrong.
 */
export interface OutboxRepository<C extends Catalogue, Tx> extends AsyncDisposable {
  /** Writes the event in the caller's transaction. Returns its id. */
  insert<Name extends EventName<C>>(tx: Tx, entry: NewOutboxEntry<C, Name>): Promise<string>
  /**
   * Takes up to so many events. Nobody else gets them until they are marked or the lease ends. One whose reader vanished
   * comes by itself and, if nothing was in hand, stays so: nothing else comes until it is marked or its lease ends.
   */
  findPending(limit: number): Promise<readonly OutboxEntry[]>
  /**
   * These are done. Where it throws for one, the others are written. After an error that says nothing of the result (a
   * connection that broke) call it again: what the first try has written counts as written.
   * @throws NotFoundError for the first that is not held, LeaseLostError for the first whose lease is not its own any more
   */
  markProcessed(ids: readonly string[]): Promise<void>
  /**
   * This one failed: it is PENDING again after a pause or, with no attempts left, a dead letter. Can be repeated too, with
   * one doubt: if the first try made it PENDING again and its answer was lost, the second is a LeaseLostError, since nobody
   * can tell then who gave it back.
   */
  markFailed(id: string, reason: string): Promise<void>
  /**
   * Gives back what is not marked, once what was asked before has been answered, and closes the connections. It finds and
   * marks nothing any more.
   */
  close(): Promise<void>
}

const MOST_AT_ONCE = 10_000

/** Makes a repository. Opens nothing until it is used. */
export function createOutboxRepository<C extends Catalogue, Tx>(
  options: OutboxRepositoryOptions<C, Tx>,
): OutboxRepository<C, Tx> {
  refuseProblems('the outbox repository', repositoryProblems(options))
  return new LeasingRepository(options)
}

class LeasingRepository<C extends Catalogue, Tx> implements OutboxRepository<C, Tx> {
  readonly #options: OutboxRepositoryOptions<C, Tx>
  readonly #policy: RetryPolicy
  readonly #random: Random
  readonly #clock: Clock
  readonly #workerId: string
  readonly #hand: RepositoryHand
  /** One at a time: two that look at once would each take their suspect for the only thing in hand. */
  readonly #taking = new Mutex()
  readonly #marking = new Set<Promise<void>>()
  /** What was handed out as the only thing in hand, and when its lease has ended at the latest. */
  #alone: { readonly delivery: ClaimedDelivery; readonly untilMs: number } | null = null
  #store: WorkerStore | null = null
  #subscriptionId: number | null = null
  #isJoining = true
  #isClosed = false

  constructor(options: OutboxRepositoryOptions<C, Tx>) {
    const { retry, maxAttempts } = options
    this.#options = options
    this.#random = options.random ?? systemRandom
    this.#clock = leaseClock(options.clock ?? systemClock)
    this.#workerId = (options.ids ?? systemIds).workerId()
    this.#hand = new RepositoryHand(options.subscription)
    this.#policy = resolveRetryPolicy({
      ...(retry === undefined ? {} : { backoff: retry }),
      ...(maxAttempts === undefined ? {} : { maxAttempts }),
    })
  }

  async insert<Name extends EventName<C>>(tx: Tx, entry: NewOutboxEntry<C, Name>): Promise<string> {
    refuseProblems('insert', [
      recordProblem('the entry', entry),
      ...(isRecord(entry) ? unknownOptionProblems(entry, ['id', 'eventType', 'aggregateId', 'payload']) : []),
    ])
    const { eventType, aggregateId, payload, id: eventId } = entry
    return this.#options.outbox.publish(tx, eventType, { aggregateId, payload, eventId })
  }

  async findPending(limit: number): Promise<readonly OutboxEntry[]> {
    refuseProblems('findPending', [wholeNumberProblem('limit', limit ?? null, 1, MOST_AT_ONCE)])
    return this.#taking.run(() => this.#find(limit))
  }

  async #find(limit: number): Promise<readonly OutboxEntry[]> {
    const store = this.#opened()
    await this.#hand.offerBack(store)
    if (this.#holdsAlone()) return []
    const subscriptionId = await this.#registered(store)
    await this.#advance(store)
    const leaseMs = this.#options.leaseMs ?? 300_000
    const request = { subscriptionId, workerId: this.#workerId, leaseMs, limit }
    const { suspects, retired } = await store.recover([subscriptionId])
    const retiredBy = retired.get(subscriptionId)
    if (retiredBy !== undefined) throw retiredError(this.#options.subscription, retiredBy)
    const suspected = (suspects.get(subscriptionId) ?? 0) > 0 ? await this.#suspect(store, request) : []
    const claimed = suspected.length > 0 ? suspected : await store.claim(request)
    this.#hand.take(claimed)
    // Closed meanwhile: it goes back next, and must not be worked on.
    if (this.#isClosed) throw closedError(this.#options.subscription)
    return claimed.map(toEntry)
  }

  /** A suspect comes alone, and that is written down: if it ends the process, it is clear which it was. */
  async #suspect(store: WorkerStore, request: ClaimRequest): Promise<readonly ClaimedDelivery[]> {
    const [suspect] = await store.claimSuspects({ ...request, limit: 1 })
    if (suspect === undefined) return []
    // What the caller holds already may run beside it, and then it is not clear.
    if (this.#hand.hasBeside(suspect)) return [suspect]
    const untilMs = this.#clock.monotonicMs() + request.leaseMs
    if (!(await this.#markAlone(store, suspect))) return []
    this.#alone = { delivery: suspect, untilMs }
    return [suspect]
  }

  /** False if it may not run and goes back. If the answer is lost it goes back as well: it may be marked, and nobody runs it. */
  async #markAlone(store: WorkerStore, suspect: ClaimedDelivery): Promise<boolean> {
    this.#hand.goesBack(suspect)
    try {
      const isAlone = await store.markAlone(suspect)
      if (isAlone) this.#hand.keeps(suspect)
      return isAlone
    } finally {
      await this.#hand.offerBack(store)
    }
  }

  /** Whether the caller still has, or may have, what has to be alone. */
  #holdsAlone(): boolean {
    const isOver =
      this.#alone === null ||
      !this.#hand.has(this.#alone.delivery) ||
      this.#clock.monotonicMs() >= this.#alone.untilMs
    if (isOver) this.#alone = null
    return !isOver
  }

  async markProcessed(ids: readonly string[]): Promise<void> {
    const isList = Array.isArray(ids) && ids.every((id) => typeof id === 'string')
    refuseProblems('markProcessed', [isList ? null : `ids must be a list of texts, but is ${shown(ids)}`])
    return this.#mark(ids, () => DONE)
  }

  async markFailed(id: string, reason: string): Promise<void> {
    refuseProblems('markFailed', [textProblem('id', id ?? null), textProblem('reason', reason ?? null)])
    const failure = deliveryFailure('MARKED_FAILED' satisfies OwnFailureCode, reason)
    const outcome = { kind: 'failed', failure, retry: { kind: 'by-policy' } } as const
    return this.#mark([id], (delivery) => decide(delivery, outcome, this.#policy, this.#random))
  }

  async #mark(
    ids: readonly string[],
    settlementOf: (delivery: ClaimedDelivery) => Settlement,
  ): Promise<void> {
    const marking = this.#hand.mark(this.#opened(), ids, settlementOf)
    this.#marking.add(marking)
    try {
      await marking
    } finally {
      this.#marking.delete(marking)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // After the look that is under way, or what that finds would be leased and nobody's.
    await this.#taking.run(() => this.#close())
  }

  async #close(): Promise<void> {
    const store = this.#store
    if (store === null) return
    this.#store = null
    await Promise.allSettled(this.#marking)
    try {
      await this.#hand.giveBackAll(store)
    } finally {
      await store.close()
    }
  }

  readonly [Symbol.asyncDispose] = (): Promise<void> => this.close()

  #opened(): WorkerStore {
    if (this.#isClosed) throw closedError(this.#options.subscription)
    this.#store ??= this.#options.store.openWorker()
    return this.#store
  }

  async #registered(store: WorkerStore): Promise<number> {
    this.#subscriptionId ??= await this.#register(store)
    return this.#subscriptionId
  }

  /** No worker keeps house for a subscription that only a repository reads: it has to let it join by itself. */
  async #advance(store: WorkerStore): Promise<void> {
    if (!this.#isJoining) return
    this.#isJoining = (await store.advanceJoining()).includes(this.#options.subscription)
  }

  async #register(store: WorkerStore): Promise<number> {
    await store.assertReady()
    const { id } = await store.register({
      name: this.#options.subscription,
      streams: this.#options.streams ?? null,
      eventTypes: null,
      orderBy: 'none',
      lanes: 0,
      onDead: 'block',
      maxAttempts: this.#policy.maxAttempts,
      // Whoever inserts before the first look means it to be found.
      startFrom: 'beginning',
    })
    return id
  }
}

function toEntry({ event, attempt }: ClaimedDelivery): OutboxEntry {
  return {
    id: event.eventId,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
    eventType: event.type,
    payload: event.payload,
    status: 'PENDING',
    createdAt: event.createdAt,
    processedAt: null,
    retryCount: attempt - 1,
  }
}
