import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import { Outage } from '../runtime/outage.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'
import type { HeartbeatReport, QueueStore } from '../store/queue-store.ts'
import type { Held } from './hand.ts'
import type { OwnedLane } from './source.ts'
import { WakeUp } from './wake-up.ts'

/** What somebody holds at one moment. */
export interface HeldLeases {
  readonly held: readonly Held[]
  readonly lanes: readonly OwnedLane[]
}

/** Somebody with leases: a runner. */
export interface LeaseHolder {
  readonly subscriptionId: number
  /** False once it claims no more: others need not count with it when they divide the lanes. */
  readonly isServing: boolean
  leases(): HeldLeases
  /** The database says that these, which `leases` named, are not ours any more. */
  lose(lost: readonly Held[], lanes: readonly OwnedLane[]): void
  /** Gives up what no heartbeat has confirmed for too long. */
  expire(nowMs: number): void
}

/** Who keeps which leases, and how long they last. */
export interface LeaseKeeperParts {
  readonly store: Pick<QueueStore, 'heartbeat'>
  readonly workerId: string
  readonly host: string
  readonly pid: number
  readonly leaseMs: number
  readonly holders: readonly LeaseHolder[]
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
}

const BEATS_PER_LEASE = 3
const LOOKS_PER_LEASE = 30
const JITTER = 0.1
/**
 * What part of its lease a delivery may be old before a heartbeat goes out for it. One that was claimed while a heartbeat was
 * under way is not named by that, and if it is of a lane it has only what was left of the lane's time.
 */
const OLDEST_UNNAMED = 1 / 2

/** How often leases are extended, in milliseconds: two heartbeats may fail before one is lost. */
export function heartbeatEveryMs(leaseMs: number): number {
  return leaseMs / BEATS_PER_LEASE
}

/**
 * Extends everything this worker has in hand, again and again, and watches by its own clock whether that works: the
 * database may be out of reach, and this process may have been asleep.
 */
export class LeaseKeeper {
  readonly #parts: LeaseKeeperParts
  readonly #outage: Outage
  /** Ends the pause before the next heartbeat. */
  readonly #due: WakeUp
  #sentAtMs: number
  /** What the last heartbeat was about. */
  #named: ReadonlySet<Held> = new Set()

  constructor(parts: LeaseKeeperParts) {
    this.#parts = parts
    const { observer, random, clock } = parts
    this.#due = new WakeUp(clock)
    this.#sentAtMs = clock.monotonicMs()
    this.#outage = new Outage({
      random,
      onBegin: (error) => observer({ kind: 'error', during: 'heartbeat', error, subscription: null }),
    })
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#beatLoop(signal), this.#watchLoop(signal)])
  }

  /** One heartbeat: extends, and tells the holders what was lost. Rejects when the database cannot be asked. */
  async beat(): Promise<void> {
    const { store, workerId, host, pid, leaseMs, holders, clock } = this.#parts
    const leases = holders.map((holder) => ({ holder, ...holder.leases() }))
    const sentAtMs = clock.monotonicMs()
    this.#sentAtMs = sentAtMs
    this.#named = new Set(leases.flatMap(({ held }) => held))
    const report = await store.heartbeat({
      workerId,
      host,
      pid,
      leaseMs,
      subscriptionIds: holders
        .filter(({ isServing }) => isServing)
        .map(({ subscriptionId }) => subscriptionId),
      deliveries: leases.flatMap(({ held }) => held.map(({ delivery }) => delivery)),
      lanes: leases.flatMap(({ holder: { subscriptionId }, lanes }) =>
        lanes.map(({ lane, epoch }) => ({ subscriptionId, lane, epoch })),
      ),
    })
    for (const lease of leases) tellLost(lease, report)
    for (const lease of leases) confirm(lease, report, sentAtMs)
  }

  async #beatLoop(signal: AbortSignal): Promise<void> {
    let pauseMs = this.#untilNextMs()
    for (;;) {
      await this.#due.wait(pauseMs, signal)
      if (signal.aborted) return
      pauseMs = await this.#tryBeat()
      // What rang while it was under way may have been named by it, and rings again if not.
      this.#due.forget()
    }
  }

  /** From when the last was sent: one that takes its time must not put the next one off. */
  #untilNextMs(): number {
    const { clock, random, leaseMs } = this.#parts
    return this.#sentAtMs + jittered(heartbeatEveryMs(leaseMs), JITTER, random) - clock.monotonicMs()
  }

  /** Returns the pause before the next: short after a failure, for the leases are running out. */
  async #tryBeat(): Promise<number> {
    try {
      await this.beat()
      this.#outage.succeeded()
      return this.#untilNextMs()
    } catch (error) {
      return Math.min(this.#outage.failed(error), heartbeatEveryMs(this.#parts.leaseMs))
    }
  }

  async #watchLoop(signal: AbortSignal): Promise<void> {
    const { clock, leaseMs, holders } = this.#parts
    while (!signal.aborted) {
      await clock.sleep(leaseMs / LOOKS_PER_LEASE, signal)
      const nowMs = clock.monotonicMs()
      for (const holder of holders) holder.expire(nowMs)
      if (this.#isPressing(nowMs)) this.#due.wake()
    }
  }

  #isPressing(nowMs: number): boolean {
    const { holders, leaseMs } = this.#parts
    const isOld = (held: Held): boolean => nowMs - held.confirmedAtMs > leaseMs * OLDEST_UNNAMED
    return holders.some((holder) => holder.leases().held.some((one) => isOld(one) && !this.#named.has(one)))
  }
}

/** What a transaction still open has locked was not extended: it must not be taken to be good for longer. */
function confirm(
  { holder, held, lanes }: HeldLeases & { readonly holder: LeaseHolder },
  { busyDeliveries, lostLanes }: HeartbeatReport,
  sentAtMs: number,
): void {
  const busy = busyDeliveries.length === 0 ? null : new Set(busyDeliveries)
  for (const one of held) {
    if (busy?.has(one.delivery) !== true) one.confirm(sentAtMs)
  }
  for (const lane of lanes) if (!isLostLane(lostLanes, holder, lane)) lane.term.confirm(sentAtMs)
}

/**
 * By what was named, not by key: while the heartbeat was under way a delivery may have been settled and claimed again,
 * and the lease it is held under now is not the one that was lost.
 */
function tellLost(
  { holder, held, lanes }: HeldLeases & { readonly holder: LeaseHolder },
  { lostDeliveries, lostLanes }: HeartbeatReport,
): void {
  if (lostDeliveries.length === 0 && lostLanes.length === 0) return
  const lost = new Set(lostDeliveries)
  holder.lose(
    held.filter(({ delivery }) => lost.has(delivery)),
    lanes.filter((lane) => isLostLane(lostLanes, holder, lane)),
  )
}

function isLostLane(
  lost: HeartbeatReport['lostLanes'],
  { subscriptionId }: LeaseHolder,
  { lane }: OwnedLane,
): boolean {
  return lost.some((one) => one.subscriptionId === subscriptionId && one.lane === lane)
}
