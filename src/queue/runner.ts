import type { ClaimedDelivery, DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import { DONE, RELEASE_NOW } from '../delivery/settlements.ts'
import { ignoreWorkerEvents } from '../observe/worker-events.ts'
import { LeaseLostError } from '../runtime/errors.ts'
import { nextTurn } from '../runtime/turn.ts'
import type { SettleReport } from '../store/queue-store.ts'
import { ApartRuns } from './apart-runs.ts'
import type { GivenBack } from './backlog.ts'
import { ClaimLoop, type ClaimResult } from './claim-loop.ts'
import type { Load } from './claim-size.ts'
import { Executor } from './executor.ts'
import { isLater } from './given-back.ts'
import type { Held } from './hand.ts'
import { Mutex } from './mutex.ts'
import { type Ended, judge, type MayBeWritten, tellClaimed, tellSettled } from './report.ts'
import type { RunnerParts } from './runner-parts.ts'
import type { OwnedLane } from './source.ts'

type Results<Delivery extends ClaimedDelivery> = readonly Ended<Delivery>[]

/**
 * Takes the deliveries of one subscription and runs them: claims ahead of its handlers but not too far, hands over
 * what may start, passes results on, and gives back what it may not or need not run.
 */
export class Runner<Delivery extends ClaimedDelivery = ClaimedDelivery> {
  readonly #parts: RunnerParts<Delivery>
  readonly #executor: Executor<Delivery>
  readonly #apart: ApartRuns<Delivery>
  readonly #claims: ClaimLoop
  /** One claim at a time, so that what is in hand is known when the next one comes in. */
  readonly #taking = new Mutex()
  readonly #whenIdle: (() => void)[] = []
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
    this.#apart = new ApartRuns({
      ...parts,
      taking: this.#taking,
      isStopping: () => this.#stopping,
      giveBack: (back) => this.#giveBack(back),
      onClaimed: (suspects, durationMs) => tellClaimed(parts.observer, this.name, suspects, durationMs),
      onEnded: (held, outcome, durationMs) => this.#ended(held, outcome, durationMs),
      onIdle: () => this.#becameIdle(),
    })
    this.#claims = new ClaimLoop({
      ...parts,
      tend: () => this.#taking.run(() => parts.source.tend()),
      claim: (limit) => this.#taking.run(() => this.#claim(limit)),
      load: () => this.#load(),
      hasRoomAgain: () => parts.source.hasRoomAgain(),
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
    return this.#executor.handling + this.#apart.running
  }

  /** How many deliveries were given back without a verdict. */
  get released(): number {
    return this.#released
  }

  /** Whether it claims. */
  get isServing(): boolean {
    return !this.#stopping
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
    // A claim of suspects is none of the loop's.
    await this.#taking.run(async () => this.#parts.source.close())
    this.#parts.results.hurry()
    this.#giveBackIdle()
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
    return this.#taking.run(() => this.#parts.source.leave())
  }

  /** Claims suspects and runs them; the caller sees to it that nothing else runs. False when there was none. */
  async runSuspects(most: number): Promise<boolean> {
    if (this.#stopping) return false
    if (!(await this.#apart.run(Math.min(most, this.#parts.options.concurrency)))) return false
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
    for (const held of this.#abandon([...hand.lose(lost), ...ofLanes], true)) {
      hand.drop(held)
      const settled = { delivery: held.delivery, settlement: RELEASE_NOW, durationMs: 0 }
      tellSettled(this.#parts.observer, this.name, settled, 'lost')
    }
  }

  /** Gives up what no heartbeat has confirmed for too long. The database may still know it as ours, so it is told. */
  expire(nowMs: number): void {
    const { hand, source } = this.#parts
    const lanes = source.expireLanes(nowMs)
    const lost = [...hand.expire(nowMs), ...lanes.flatMap((lane) => hand.loseLane(lane))]
    this.#giveBack(this.#abandon(lost, false).map((held) => ({ held, settlement: RELEASE_NOW })))
  }

  /** A batch of results is written: told by the settler. Returns those that are lost. */
  settled(batch: Results<Delivery>, report: SettleReport, doubt: MayBeWritten<Delivery>): Results<Delivery> {
    const fateOf = judge(report, doubt)
    const [written, lost]: [Ended<Delivery>[], Ended<Delivery>[]] = [[], []]
    let completed = false
    for (const ended of batch) {
      const fate = fateOf(ended)
      const settlement = fate === 'committed' ? DONE : ended.settlement
      this.#close(ended.held, settlement, fate === 'lost')
      tellSettled(this.#parts.observer, this.name, ended, fate)
      if (fate === 'lost') lost.push(ended)
      else written.push(fate === 'committed' ? { ...ended, settlement } : ended)
      completed ||= ended.completed === true
    }
    this.#parts.afterSettled(written)
    this.#claims.settled()
    if (this.#stopping) this.#giveBackIdle()
    // Keys that waited to know what became of a completion may go on.
    if (completed) this.#executor.pump()
    return lost
  }

  /**
   * A result that cannot be written for now: somebody has its row locked, or the database refuses it, and then its lease is
   * let lapse. Until it is written or lost nothing later of its key runs. Told by the settler, which goes on offering it.
   */
  unwritten({ held, settlement }: Ended<Delivery>, refusal?: Error): void {
    if (refusal !== undefined) {
      this.#fault('settle', refusal, held.delivery)
      this.#parts.hand.lose([held])
    }
    this.#giveBack(this.#parts.backlog.unwritten(held, settlement))
  }

  /** Results that waited for one that is lost: what stands behind it runs again after it. Returns what is to be written. */
  outrun(behind: Results<Delivery>, lost: Ended<Delivery>): Results<Delivery> {
    return behind.map((ended) => {
      if (!isLater(ended.delivery, lost.delivery)) return ended
      this.unwritten(ended)
      return { ...ended, settlement: this.#parts.backlog.afterOutrun(ended.settlement) }
    })
  }

  /** Results that could not be written: their leases will lapse. Told by the settler. */
  gaveUp(batch: Results<Delivery>, error: unknown): void {
    this.#fault('settle', error)
    for (const { held, settlement } of batch) this.#close(held, settlement, true)
  }

  #load(): Load {
    const { hand, backlog } = this.#parts
    const { size: inHand, characters } = hand
    return { ready: backlog.ready, running: this.#executor.handling, inHand, characters }
  }

  async #claim(limit: number): Promise<ClaimResult> {
    const { source, hand, backlog, clock, observer } = this.#parts
    const claim = backlog.claimSent()
    const sentAtMs = clock.monotonicMs()
    try {
      const { deliveries, confirmedAtMs, isAll } = await source.take(limit)
      if (deliveries.length > 0) tellClaimed(observer, this.name, deliveries, clock.monotonicMs() - sentAtMs)
      this.#giveBack(backlog.offer(hand.take(deliveries, confirmedAtMs), claim))
      // The next claim is sent first: the database works on it while the handlers run. After the last there is none to send.
      if (isAll) this.#executor.pump()
      else void nextTurn().then(() => this.#executor.pump())
      const characters = deliveries.reduce((sum, delivery) => sum + (delivery.characters ?? 0), 0)
      return { got: deliveries.length, characters, isAll }
    } catch (error) {
      backlog.offer([], claim)
      throw error
    }
  }

  #ended(held: Held<Delivery>, outcome: DeliveryOutcome, durationMs: number): void {
    const { backlog, results, observer } = this.#parts
    const decided = this.#parts.decide(held.delivery, outcome)
    const settlement = held.outrun ? backlog.afterOutrun(decided) : decided
    const completed = 'completed' in outcome && outcome.completed
    results.add({ delivery: held.delivery, held, settlement, durationMs, completed })
    // Of the thousands whose results are still to be written, most are never spoken of again.
    if (observer === ignoreWorkerEvents) held.delivery.letGoOfEvent?.()
    if (completed) results.hurry()
    this.#giveBack(backlog.ended(held, settlement, completed))
    if (this.#stopping && this.running === 0) this.#becameIdle()
  }

  /** Interrupts those of the lost that are running. Returns those that had not started, which nobody runs now. */
  #abandon(lost: readonly Held<Delivery>[], known: boolean): readonly Held<Delivery>[] {
    if (lost.length === 0) return []
    const { backlog, handlers, options, subscription } = this.#parts
    const { dropped, givenBack } = backlog.lose(lost, known)
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
      this.#parts.results.add({ delivery: held.delivery, held, settlement, durationMs: 0, completed: false })
    }
  }

  /** While handlers still run here, others may serve the lanes that none of them is about. What fails is left to `leave`. */
  #giveBackIdle(): void {
    void this.#taking.run(() => this.#parts.source.giveBackIdle()).catch(() => {})
  }

  #close(held: Held<Delivery>, settlement: Settlement, lost: boolean): void {
    this.#parts.hand.drop(held)
    this.#giveBack(this.#parts.backlog.settled(held, settlement, lost))
  }

  #becameIdle(): void {
    this.#parts.results.hurry()
    if (this.running > 0) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #fault(during: string, error: unknown, delivery?: ClaimedDelivery): void {
    const about = delivery === undefined ? {} : { event: delivery.event }
    this.#parts.observer({ kind: 'error', during, error, subscription: this.name, ...about })
  }
}
