import { hostname } from 'node:os'
import type { PokedMonitor } from '../alert/monitor.ts'
import type { ClaimedDelivery } from '../delivery/delivery.ts'
import type { ContextServices } from '../dispatch/handler.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { Logger } from '../observe/logger.ts'
import type { Observer } from '../observe/worker-events.ts'
import { LeaseKeeper } from '../queue/lease-keeper.ts'
import { type Clock, leaseClock } from '../runtime/clock.ts'
import { CommitpostError, WorkerStoppingError } from '../runtime/errors.ts'
import type { Random } from '../runtime/random.ts'
import type { WakeSubscription, WorkerStore } from '../store/store.ts'
import { composeRunner, type RunningSubscription } from './compose-runner.ts'
import { Housekeeping } from './housekeeping.ts'
import { PolicyRedriver } from './policy-redriver.ts'
import { processQuarantine } from './process-quarantine.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'
import type { ResolvedWorkerOptions } from './worker-options.ts'

/** What a worker is made of. */
export interface WorkerParts {
  readonly id: string
  openStore(): WorkerStore
  readonly subscriptions: readonly ResolvedSubscription[]
  readonly options: ResolvedWorkerOptions
  readonly catalogue: Catalogue
  readonly services: ContextServices<ClaimedDelivery>
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
  readonly logger: Logger
  /** Told after every attempt: what its handler published is committed by now, if it is. */
  onAttemptEnded(): void
  /** What retention policies let go; null where there are none. */
  readonly retention: { look(): void; stop(): Promise<void> } | null
  /** Makes the monitor that runs beside the work; null where nobody is to be told anything. */
  openMonitor(): PokedMonitor | null
  /** Rings when there may be work. */
  readonly bell: { add(worker: { wake(): void }): () => void }
}

/** After the handlers' time is over: how long writing down, and each step of leaving, may take. */
const LAST_WORDS_MS = 5_000

/** One worker's time at work: everything between its registration and its leaving. */
export class WorkerSession {
  readonly #parts: WorkerParts
  readonly #store: WorkerStore
  readonly #running: readonly RunningSubscription[]
  readonly #keeper: LeaseKeeper
  readonly #housekeeping: Housekeeping
  readonly #keeperStop = new AbortController()
  readonly #giveUp: AbortController
  #loops: Promise<unknown> = Promise.resolve()
  #listener: WakeSubscription | null = null
  #monitor: PokedMonitor | null = null
  #ignoreBell: () => void = () => {}

  private constructor(
    parts: WorkerParts,
    store: WorkerStore,
    running: readonly RunningSubscription[],
    giveUp: AbortController,
  ) {
    this.#parts = parts
    this.#store = store
    this.#running = running
    this.#giveUp = giveUp
    const { clock, random, observer, options, id } = parts
    const runners = running.map(({ runner }) => runner)
    const shared = { store, clock, random, observer }
    const { leaseMs, housekeepingMs, unmatched } = options
    this.#keeper = new LeaseKeeper({
      ...shared,
      clock: leaseClock(clock),
      workerId: id,
      host: hostname(),
      pid: process.pid,
      leaseMs,
      holders: runners,
    })
    this.#housekeeping = new Housekeeping({
      ...shared,
      subscriptions: runners,
      workerId: id,
      quarantine: processQuarantine(clock).quarantine,
      everyMs: housekeepingMs,
      unmatched,
      retention: parts.retention,
      redriver: new PolicyRedriver({ store, observer, subscriptions: running }),
    })
  }

  /** Registers the subscriptions and begins to work. Rejects, having left nothing behind, when that fails. */
  static async begin(parts: WorkerParts): Promise<WorkerSession> {
    const store = parts.openStore()
    try {
      const session = await WorkerSession.#register(parts, store)
      await session.#start()
      return session
    } catch (error) {
      await store.close().catch(() => {})
      throw error
    }
  }

  static async #register(parts: WorkerParts, store: WorkerStore): Promise<WorkerSession> {
    const { options, id } = parts
    const { soloGate, strays } = processQuarantine(parts.clock)
    const giveUp = new AbortController()
    const limits = { leaseMs: options.leaseMs, marginMs: options.marginMs }
    const shared = { ...parts, store, soloGate, strays, limits, leaseClock: leaseClock(parts.clock) }
    const env = { ...shared, workerId: id, giveUp: giveUp.signal }
    const running: RunningSubscription[] = []
    await store.assertReady()
    // Before anything is registered that nobody could read.
    if (parts.subscriptions.some(({ definition }) => definition.engine === 'stream')) {
      await (await store.openStreams())?.assertStreamable()
    }
    for (const resolved of parts.subscriptions) {
      running.push(await composeRunner(env, resolved, await store.register(resolved.definition)))
    }
    return new WorkerSession(parts, store, running, giveUp)
  }

  /** Resolves when none of the subscriptions is joining any more. */
  get active(): Promise<void> {
    return this.#housekeeping.active
  }

  /** Looks for work at once. */
  wake(): void {
    for (const { runner } of this.#running) runner.wake()
  }

  /** Stops claiming, lets handlers finish for so long, writes everything down and leaves. Never rejects. */
  async end(drainMs: number): Promise<void> {
    const { observer, id } = this.#parts
    observer({ kind: 'stopping', workerId: id, inHand: this.#sum(inHand) })
    this.#ignoreBell()
    this.#housekeeping.stop()
    await this.#drain(drainMs)
    await this.#withTime('writing down results', () => this.#flush())
    this.#giveUp.abort()
    this.#keeperStop.abort()
    await this.#withTime('stopping the monitor', async () => this.#monitor?.stop())
    await this.#withTime('leaving', () => this.#leave())
    await this.#withTime('closing transports', () => this.#closeTransports())
    await this.#withTime('closing connections', () => this.#store.close())
    observer({ kind: 'stopped', workerId: id, released: this.#sum(({ runner }) => runner.released) })
  }

  async #start(): Promise<void> {
    const { options, observer, id } = this.#parts
    // First of all: others count this worker when they divide the lanes.
    await this.#keeper.beat()
    if (options.listen) await this.#listen()
    this.#ignoreBell = this.#parts.bell.add(this)
    this.#loops = Promise.all([this.#keeper.run(this.#keeperStop.signal), this.#housekeeping.run()])
    this.#monitor = this.#parts.openMonitor()
    this.#monitor?.start()
    for (const { runner, reader } of this.#running) {
      runner.start()
      reader?.start()
    }
    observer({ kind: 'started', workerId: id, subscriptions: this.#running.map(({ runner }) => runner.name) })
  }

  async #listen(): Promise<void> {
    // Polling finds everything too, only later.
    const onDeaf = (error: unknown): void => this.#failed('listen', error)
    try {
      this.#listener = await this.#store.listen(() => this.wake(), onDeaf)
    } catch (error) {
      onDeaf(error)
    }
  }

  async #drain(drainMs: number): Promise<void> {
    const drained = this.#stopRunners()
    if (await this.#inTime(drained, drainMs)) return
    const reason = new WorkerStoppingError()
    for (const { runner, reader } of this.#running) {
      runner.interrupt(reason, 0)
      reader?.interrupt(reason)
    }
    await this.#withTime('stopping', () => drained)
  }

  async #stopRunners(): Promise<void> {
    const readers = this.#running.map(({ reader }) => reader?.stop())
    await Promise.all(this.#running.map(({ runner }) => runner.stop()))
    // Others learn that they need not count with this worker: while its handlers run they may take what it gave back.
    void this.#keeper.beat().catch(() => {})
    await Promise.all([...this.#running.map(({ runner }) => runner.drained()), ...readers])
  }

  async #flush(): Promise<void> {
    await Promise.all(this.#running.map((subscription) => subscription.flush()))
  }

  async #closeTransports(): Promise<void> {
    await Promise.all(this.#running.map((subscription) => subscription.close()))
  }

  async #leave(): Promise<void> {
    await this.#loops
    await this.#listener?.close()
    await Promise.all(this.#running.map(({ runner }) => runner.leave()))
    await this.#store.leave(this.#parts.id)
  }

  /** Whatever hangs or fails on the way out is reported and left: leases lapse by themselves. */
  async #withTime(during: string, work: () => Promise<unknown>): Promise<void> {
    try {
      if (await this.#inTime(work(), LAST_WORDS_MS)) return
      throw new CommitpostError('DEADLINE_EXCEEDED', `${during} took more than ${LAST_WORDS_MS} ms`)
    } catch (error) {
      this.#failed(during, error)
    }
  }

  /** True if it was done in time. */
  async #inTime(work: Promise<unknown>, ms: number): Promise<boolean> {
    const done = new AbortController()
    const timeIsUp = this.#parts.clock.sleep(ms, done.signal).then(() => false)
    try {
      return await Promise.race([work.then(() => true), timeIsUp])
    } finally {
      done.abort()
    }
  }

  #sum(count: (subscription: RunningSubscription) => number): number {
    return this.#running.reduce((sum, subscription) => sum + count(subscription), 0)
  }

  #failed(during: string, error: unknown): void {
    this.#parts.observer({ kind: 'error', during, error, subscription: null })
  }
}

function inHand({ runner, reader }: RunningSubscription): number {
  return runner.inHand + (reader?.running ?? 0)
}
