import type { ClaimedDelivery, Settlement } from '../delivery/delivery.ts'
import { deliveryFailure, type OwnFailureCode } from '../delivery/failure.ts'
import { RELEASE_NOW } from '../delivery/settlements.ts'
import type { Catalogue, EventName, PayloadInput } from '../event/catalogue.ts'
import { CommitpostError, LeaseLostError, NotFoundError } from '../runtime/errors.ts'
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
  /** Takes up to so many events. Nobody else gets them until they are marked or the lease ends. */
  findPending(limit: number): Promise<readonly OutboxEntry[]>
  /**
   * These are done. The others are written where it throws.
   * @throws NotFoundError for the first that is not held, LeaseLostError for the first that came to somebody else since its lease ended
   */
  markProcessed(ids: readonly string[]): Promise<void>
  /** This one failed: it is PENDING again after a pause or, with no attempts left, a dead letter. */
  markFailed(id: string, reason: string): Promise<void>
  /** Gives back what is not marked and closes the connections. It finds and marks nothing any more. */
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
  readonly #workerId: string
  readonly #held = new Map<string, ClaimedDelivery>()
  #store: WorkerStore | null = null
  #subscriptionId: Promise<number> | null = null
  #isJoining = true
  #isClosed = false

  constructor(options: OutboxRepositoryOptions<C, Tx>) {
    const { retry, maxAttempts } = options
    this.#options = options
    this.#random = options.random ?? systemRandom
    this.#workerId = (options.ids ?? systemIds).workerId()
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
    const store = this.#opened()
    const subscriptionId = await this.#registered(store)
    await this.#advance(store)
    const leaseMs = this.#options.leaseMs ?? 300_000
    const request = { subscriptionId, workerId: this.#workerId, leaseMs, limit }
    const { suspects, retired } = await store.recover([subscriptionId])
    const retiredBy = retired.get(subscriptionId)
    if (retiredBy !== undefined) throw retiredError(this.#options.subscription, retiredBy)
    const suspected = (suspects.get(subscriptionId) ?? 0) > 0 ? await this.#suspect(store, request) : []
    const claimed = suspected.length > 0 ? suspected : await store.claim(request)
    for (const delivery of claimed) this.#held.set(delivery.event.eventId, delivery)
    return claimed.map(toEntry)
  }

  /** A suspect comes alone, and that is written down: if it ends the process, it is clear which it was. */
  async #suspect(store: WorkerStore, request: ClaimRequest): Promise<readonly ClaimedDelivery[]> {
    const [suspect] = await store.claimSuspects({ ...request, limit: 1 })
    if (suspect === undefined) return []
    // What the caller holds already may run beside it, and then it is not clear.
    if (this.#held.size > 0 || (await store.markAlone(suspect))) return [suspect]
    await store.settle([{ delivery: suspect, settlement: RELEASE_NOW, durationMs: 0 }])
    return []
  }

  async markProcessed(ids: readonly string[]): Promise<void> {
    const isList = Array.isArray(ids) && ids.every((id) => typeof id === 'string')
    refuseProblems('markProcessed', [isList ? null : `ids must be a list of texts, but is ${shown(ids)}`])
    return this.#settle(ids, () => ({ kind: 'done' }))
  }

  async markFailed(id: string, reason: string): Promise<void> {
    refuseProblems('markFailed', [textProblem('id', id ?? null), textProblem('reason', reason ?? null)])
    const failure = deliveryFailure('MARKED_FAILED' satisfies OwnFailureCode, reason)
    const outcome = { kind: 'failed', failure, retry: { kind: 'by-policy' } } as const
    return this.#settle([id], (delivery) => decide(delivery, outcome, this.#policy, this.#random))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const store = this.#store
    if (store === null) return
    this.#store = null
    this.#subscriptionId = null
    const held = [...this.#held.values()]
    this.#held.clear()
    await store.settle(held.map((delivery) => ({ delivery, settlement: RELEASE_NOW, durationMs: 0 })))
    await store.close()
  }

  readonly [Symbol.asyncDispose] = (): Promise<void> => this.close()

  #opened(): WorkerStore {
    if (this.#isClosed) throw closedError(this.#options.subscription)
    this.#store ??= this.#options.store.openWorker()
    return this.#store
  }

  #registered(store: WorkerStore): Promise<number> {
    this.#subscriptionId ??= this.#register(store).catch((error: unknown) => {
      this.#subscriptionId = null
      throw error
    })
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

  async #settle(
    ids: readonly string[],
    settlementOf: (delivery: ClaimedDelivery) => Settlement,
  ): Promise<void> {
    const held = ids.flatMap((id) => this.#held.get(id) ?? [])
    const notHeld = ids.find((id) => !this.#held.has(id))
    const { lost, busy } = await this.#opened().settle(
      held.map((delivery) => ({ delivery, settlement: settlementOf(delivery), durationMs: 0 })),
    )
    const locked = new Set(busy.map(({ delivery }) => delivery.event.eventId))
    for (const id of ids) if (!locked.has(id)) this.#held.delete(id)
    if (locked.size > 0) throw lockedError([...locked])
    const lostPositions = new Set(lost.map(({ position }) => position))
    if (notHeld !== undefined) throw notHeldError(notHeld, this.#options.subscription)
    const eventId = held.find(({ position }) => lostPositions.has(position))?.event.eventId
    if (eventId !== undefined) throw new LeaseLostError({ eventId, subscription: this.#options.subscription })
  }
}

function closedError(subscription: string): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `The repository of "${subscription}" is closed, and what it held was given back. Nothing was written: make a new one.`,
  )
}

function lockedError(ids: readonly string[]): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `The deliveries of these events are locked by another transaction, so nothing was written for them: ${ids.join(', ')}. ` +
      'They are still held: mark them again when that transaction has ended.',
  )
}

function notHeldError(id: string, subscription: string): NotFoundError {
  const message =
    `There is no delivery of event ${shown(id)} to "${subscription}" in hand: findPending of this repository has not ` +
    'returned it, or it was marked or lost before. Nothing was written for it.'
  return new NotFoundError('delivery', id, { message })
}

function retiredError(subscription: string, retiredBy: string | null): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `Subscription "${subscription}" was retired${retiredBy === null ? '' : ` by ${retiredBy}`}: nothing is found for it ` +
      'any more. A new repository of that name begins a new subscription.',
  )
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
