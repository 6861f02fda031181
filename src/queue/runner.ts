import type { ClaimedDelivery, DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import { LeaseLostError } from '../runtime/errors.ts'
import type { LaneDelivery, SettleReport } from '../store/queue-store.ts'
import { type GivenBack, RELEASE_NOW, RELEASE_SOON } from './backlog.ts'
import { ClaimLoop } from './claim-loop.ts'
import type { Load } from './claim-size.ts'
import { Executor } from './executor.ts'
import { type Held, keyText } from './hand.ts'
import { Mutex } from './mutex.ts'
import { type Ended, tellSettled } from './report.ts'
import type { RunnerParts } from './runner-parts.ts'
import type { OwnedLane } from './source.ts'

/**
 * Takes the deliveries of one subscription and runs them: claims ahead of its handlers but not too far, hands over
 * what may start, passes results on, and gives back what it may not or need not run.
 */
export class Runner<Delivery extends ClaimedDelivery = ClaimedDelivery> {
  readonly #parts: RunnerParts<Delivery>
  readonly #executor: Executor<Delivery>
  readonly #claims: ClaimLoop
  /** One claim at a time, so that what is in hand is known when the next one comes in. */
  readonly #taking = new Mutex()
  readonly #whenIdle: (() => void)[] = []
  #solos = 0
  #released = 0
  #stopping = false

  constructor(parts: RunnerParts<Delivery>) {
    this.#parts = parts
    this.#executor = new Executor({
      ...parts,
      concurrency: parts.options.concurrency,
      dispatch: (delivery) => parts.handlers.dispatch(delivery),
      isGood: (held, nowMs) => parts.hand.isGood(held, nowMs),
      onEnded: (held, outcome, durationMs) => this.#ended(held, outcome, durationMs),
      onTaken: () => this.#claims.loadChanged(),
      onIdle: () => this.#becameIdle(),
      onFault: (error) => this.#fault('run', error),
    })
    this.#claims = new ClaimLoop({
      ...parts,
      tend: () => this.#taking.run(() => parts.source.tend()),
      claim: (limit) => this.#taking.run(() => this.#claim(limit)),
      load: () => this.#load(),
      takeSample: () => this.#executor.takeSample(),
      onOutage: (error) => this.#fault('claim', error),
    })
  }

  /** The subscription's id in the database. */
  get subscriptionId(): number {
    return this.#parts.subscription.id
  }

  /** The subscription's name. */
  get name(): string {
    return this.#parts.subscription.name
  }

  /** Everything under lease. */
  get inHand(): number {
    return this.#parts.hand.size
  }

  /** Handlers that are running. */
  get running(): number {
    return this.#executor.handling + this.#solos
  }

  /** How many deliveries were given back without a verdict. */
  get released(): number {
    return this.#released
  }

  /** Begins to claim. */
  start(): void {
    this.#claims.start()
  }

  /** There may be work: ends the pause between claims. */
  wake(): void {
    this.#claims.wake()
  }

  /** Claims no more and gives back what has not started. Resolves when no claim is under way. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#executor.close()
    this.#giveBack(this.#parts.backlog.close())
    await this.#claims.stop()
    this.#parts.results.hurry()
  }

  /** Resolves when no handler is running. Only sound after `stop`. */
  async drained(): Promise<void> {
    while (this.running > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle.push(resolve)
      })
    }
  }

  /** Tells running handlers to stop, and gives up waiting for those that do not within the grace. */
  interrupt(reason: Error, graceMs: number): number {
    return this.#parts.handlers.interrupt(reason, { graceMs })
  }

  /** Gives back whatever the source holds. Only sound when nothing is in hand. */
  leave(): Promise<void> {
    return this.#parts.source.leave()
  }

  /** Claims one suspect and runs it; the caller sees to it that nothing else runs. False when there was none. */
  async runSuspect(): Promise<boolean> {
    if (this.#stopping) return false
    const held = await this.#taking.run(() => this.#takeSuspect())
    if (held === null) return false
    if (held !== 'not yet') await this.#runAlone(held)
    await this.#parts.results.flush()
    this.#executor.pump()
    return true
  }

  /** What a heartbeat is to extend. */
  leases(): { readonly held: readonly Held<Delivery>[]; readonly lanes: readonly OwnedLane[] } {
    return { held: this.#parts.hand.extendable(), lanes: this.#parts.source.lanes() }
  }

  /** The database says that these are not ours any more: what has not started is forgotten. */
  lose(lost: readonly Held<Delivery>[], lanes: readonly OwnedLane[]): void {
    const { hand, source } = this.#parts
    const ofLanes = source.loseLanes(lanes).flatMap((lane) => hand.loseLane(lane))
    for (const held of this.#abandon([...hand.lose(lost), ...ofLanes])) {
      hand.drop(held)
      this.#tell(held, RELEASE_NOW, 0, true)
    }
  }

  /** Gives up what no heartbeat has confirmed for too long. The database may still know it as ours, so it is told. */
  expire(nowMs: number): void {
    const { hand, source } = this.#parts
    const lanes = source.expireLanes(nowMs)
    const lost = [...hand.expire(nowMs), ...lanes.flatMap((lane) => hand.loseLane(lane))]
    this.#giveBack(this.#abandon(lost).map((held) => ({ held, settlement: RELEASE_NOW })))
  }

  /** A batch of results is written: told by the settler. */
  settled(batch: readonly Ended<Delivery>[], report: SettleReport, again: boolean): void {
    const lostKeys = report.lost.length === 0 ? null : new Set(report.lost.map(keyText))
    const written: Ended<Delivery>[] = []
    for (const ended of batch) {
      const lost = lostKeys?.has(keyText(ended.delivery)) === true && isLoss(ended, again)
      this.#close(ended, lost)
      this.#tell(ended.held, ended.settlement, ended.durationMs, lost)
      if (!lost) written.push(ended)
    }
    this.#parts.afterSettled(written)
    this.#claims.loadChanged()
  }

  /** Results that could not be written: their leases will lapse. Told by the settler. */
  gaveUp(batch: readonly Ended<Delivery>[], error: unknown): void {
    this.#fault('settle', error)
    for (const ended of batch) this.#close(ended, true)
  }

  #load(): Load {
    const { backlog, hand } = this.#parts
    return { ready: backlog.ready, running: this.#executor.handling, inHand: hand.size }
  }

  async #claim(limit: number): Promise<number> {
    const { source, hand, backlog, clock } = this.#parts
    const claim = backlog.claimSent()
    const sentAtMs = clock.monotonicMs()
    try {
      const { deliveries, confirmedAtMs } = await source.take(limit)
      if (deliveries.length > 0) this.#tellClaimed(deliveries.length, 0, clock.monotonicMs() - sentAtMs)
      this.#giveBack(backlog.offer(hand.take(deliveries, confirmedAtMs), claim))
      this.#executor.pump()
      return deliveries.length
    } catch (error) {
      backlog.offer([], claim)
      throw error
    }
  }

  async #takeSuspect(): Promise<Held<Delivery> | 'not yet' | null> {
    const { source, hand, backlog, clock } = this.#parts
    const claim = backlog.claimSent()
    const sentAtMs = clock.monotonicMs()
    const { deliveries, confirmedAtMs } = await source.takeSuspect().catch((error: unknown) => {
      backlog.offer([], claim)
      throw error
    })
    // Of an unordered subscription it has a key of no meaning; of an ordered one it is the runner's own kind.
    const [held] = hand.take(deliveries as readonly (LaneDelivery & Delivery)[], confirmedAtMs)
    if (held === undefined) {
      backlog.offer([], claim)
      return null
    }
    this.#tellClaimed(1, 1, clock.monotonicMs() - sentAtMs)
    if (backlog.adopt(held, claim)) return held
    this.#giveBack([{ held, settlement: RELEASE_SOON }])
    return 'not yet'
  }

  async #runAlone(held: Held<Delivery>): Promise<void> {
    const { handlers, clock } = this.#parts
    this.#solos += 1
    const startedMs = clock.monotonicMs()
    const outcome = await handlers.dispatch(held.delivery)
    this.#solos -= 1
    this.#ended(held, outcome, clock.monotonicMs() - startedMs)
    this.#becameIdle()
  }

  #ended(held: Held<Delivery>, outcome: DeliveryOutcome, durationMs: number): void {
    const { backlog, results } = this.#parts
    const settlement = this.#parts.decide(held.delivery, outcome)
    results.add({ delivery: held.delivery, held, settlement, durationMs })
    this.#giveBack(backlog.ended(held, settlement))
    if (this.#stopping && this.running === 0) this.#becameIdle()
  }

  /** Interrupts those of the lost that are running. Returns those that had not started, which nobody runs now. */
  #abandon(lost: readonly Held<Delivery>[]): readonly Held<Delivery>[] {
    if (lost.length === 0) return []
    const { backlog, handlers, options, subscription } = this.#parts
    const { dropped, givenBack } = backlog.lose(lost)
    this.#giveBack(givenBack)
    const struck = new Set<ClaimedDelivery>(lost.map(({ delivery }) => delivery))
    const eventId = lost[0]?.delivery.event.eventId ?? ''
    const reason = new LeaseLostError({ eventId, subscription: subscription.name })
    handlers.interrupt(reason, { graceMs: options.marginMs / 2, which: (delivery) => struck.has(delivery) })
    return dropped
  }

  #giveBack(back: readonly GivenBack<Delivery>[]): void {
    for (const { held, settlement } of back) {
      if (settlement.kind === 'release') this.#released += 1
      this.#parts.results.add({ delivery: held.delivery, held, settlement, durationMs: 0 })
    }
  }

  #close(ended: Ended<Delivery>, lost: boolean): void {
    this.#parts.hand.drop(ended.held)
    this.#giveBack(this.#parts.backlog.settled(ended.held, ended.settlement, lost))
  }

  #becameIdle(): void {
    this.#parts.results.hurry()
    if (this.running > 0) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #tell(held: Held<Delivery>, settlement: Settlement, durationMs: number, lost: boolean): void {
    const settled = { delivery: held.delivery, settlement, durationMs }
    tellSettled(this.#parts.observer, this.#parts.subscription.name, settled, lost)
  }

  #tellClaimed(count: number, suspects: number, durationMs: number): void {
    const subscription = this.#parts.subscription.name
    this.#parts.observer({ kind: 'claimed', subscription, count, suspects, durationMs })
  }

  #fault(during: string, error: unknown): void {
    this.#parts.observer({ kind: 'error', during, error, subscription: this.#parts.subscription.name })
  }
}

/**
 * Whether a result that found no row to write to was lost. Not if the handler wrote it in its own transaction, and not
 * if an earlier try may have written it, unless a heartbeat says so too.
 */
function isLoss({ settlement, held }: Ended<ClaimedDelivery>, again: boolean): boolean {
  if (settlement.kind === 'done' && settlement.completed === true) return false
  return !again || held.lost
}
