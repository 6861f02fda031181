import type { ClaimedDelivery, DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import { BatchDispatcher } from '../dispatch/batch-dispatcher.ts'
import type { EventIdentity } from '../event/event.ts'
import type { Backlog } from '../queue/backlog.ts'
import { MOST_CHARACTERS } from '../queue/claim-size.ts'
import { FifoBacklog } from '../queue/fifo-backlog.ts'
import { isLater } from '../queue/given-back.ts'
import { Hand, type LeaseLimits } from '../queue/hand.ts'
import { KeyBacklog } from '../queue/key-backlog.ts'
import { LaneSource } from '../queue/lane-source.ts'
import { heartbeatEveryMs } from '../queue/lease-keeper.ts'
import { type Ended, tellCrashed } from '../queue/report.ts'
import { Runner } from '../queue/runner.ts'
import type { RunnerOptions } from '../queue/runner-parts.ts'
import { type DeliverySource, UnorderedSource } from '../queue/source.ts'
import { letsKeyGoOn, Unparker } from '../queue/unparker.ts'
import { writtenTogether } from '../queue/written-together.ts'
import { OutOfTurnError } from '../runtime/errors.ts'
import { decide } from '../settle/decide.ts'
import { Settler } from '../settle/settler.ts'
import type { LaneDelivery } from '../store/queue-store.ts'
import type { PolicyRedrive } from '../store/redrive-store.ts'
import type { RegisteredSubscription } from '../store/subscription-store.ts'
import type { StreamReader } from '../stream/stream-reader.ts'
import { mayGoTogether, openTransport } from './open-transport.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'
import { dispatcherOf, type WorkerEnvironment } from './worker-environment.ts'

/** A subscription at work. */
export interface RunningSubscription {
  readonly runner: Runner | Runner<LaneDelivery>
  /** What reads the log, for one whose engine is the stream: its runner has what failed there. */
  readonly reader: StreamReader | null
  readonly redrive: PolicyRedrive | null
  /** Resolves when everything that has ended is written down, or given up, and what waited for it is let go. */
  flush(): Promise<void>
  /** Lets go what leads to its destination. */
  close(): Promise<void>
}

/** Puts a subscription's parts together: source, backlog, dispatcher, settler, runner. */
export async function composeRunner(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  registered: RegisteredSubscription,
): Promise<RunningSubscription> {
  const queued =
    registered.lanes === 0
      ? composeUnordered(env, resolved, registered)
      : composeOrdered(env, resolved, registered)
  if (registered.engine === 'queue') return queued
  // Most workers read no log: what does is loaded for those that do.
  const { composeReader } = await import('./compose-reader.ts')
  const log = await composeReader(env, resolved, registered)
  const close = async (): Promise<void> => void (await Promise.all([queued.close(), log.close()]))
  return { ...queued, reader: log.reader, close }
}

/** What a worker that stops gives back should not lie idle for long. */
const SHARE_EVERY_MS = 3_000

function composeUnordered(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  { id }: RegisteredSubscription,
): RunningSubscription {
  const onRefused = tellRefused(env, resolved)
  const taker = { subscriptionId: id, workerId: env.workerId, leaseMs: env.limits.leaseMs, onRefused }
  return compose<ClaimedDelivery>(env, resolved, {
    id,
    hand: new Hand(env.limits),
    backlog: new FifoBacklog(),
    source: new UnorderedSource(env.store, taker, env.leaseClock),
    afterSettled: () => {},
    together: (results) => results.length,
    turnOf: () => null,
    hasUnsettledBefore: () => false,
    mayBeDone: () => true,
    idle: async () => {},
  })
}

function composeOrdered(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  { id }: RegisteredSubscription,
): RunningSubscription {
  const { store, leaseClock: clock, random, limits, workerId, observer } = env
  const { onDead, name } = resolved.definition
  const hand = new Hand<LaneDelivery>(limits)
  const source = new LaneSource({
    store,
    clock,
    random,
    options: { subscriptionId: id, workerId, ...limits, onRefused: tellRefused(env, resolved) },
    shareEveryMs: Math.min(SHARE_EVERY_MS, heartbeatEveryMs(limits.leaseMs)),
    window: { most: resolved.batchSize * 2, least: resolved.concurrency, characters: MOST_CHARACTERS },
    countInHand: (lane) => hand.countLane(lane),
    charactersInHand: (lane) => hand.charactersOf(lane),
    tokensInHand: (lanes) => hand.tokensOf(lanes),
    onRefused: (error) => observer({ kind: 'error', during: 'taking lanes', error, subscription: name }),
    onCrashed: (dead) => tellCrashed(observer, name, dead),
  })
  const backlog = new KeyBacklog({
    onDead,
    strictly: resolved.concurrency === 1,
    together: mayGoTogether(resolved) ? resolved.batchSize : 1,
  })
  const unparker = new Unparker({
    store,
    subscriptionId: id,
    onDead,
    countInHand: (key) => backlog.count(key),
    isReturning: (key) => backlog.isReturning(key),
    onUnparked: () => running.runner.wake(),
    onError: (error) => observer({ kind: 'error', during: 'unpark', error, subscription: name }),
  })
  const running = compose<LaneDelivery>(env, resolved, {
    id,
    hand,
    backlog,
    source,
    afterSettled: (written) => unparker.settled(written),
    together: (results) => (onDead === 'continue' ? writtenTogether(results) : results.length),
    turnOf: ({ delivery, settlement, completed }) =>
      completed !== true && letsKeyGoOn(settlement, onDead) ? delivery.key : null,
    mayBeDone: (delivery) => backlog.mayBeDone(delivery),
    hasUnsettledBefore: (delivery) => hand.some((one) => one.key === delivery.key && isLater(delivery, one)),
    idle: () => unparker.idle(),
  })
  return running
}

/** Tells of a delivery that cannot be claimed. */
function tellRefused(
  { observer }: WorkerEnvironment,
  { definition }: ResolvedSubscription,
): (refusal: Error, event: EventIdentity | null) => void {
  const subscription = definition.name
  return (error, event) =>
    observer({ kind: 'error', during: 'claim', error, subscription, ...(event === null ? {} : { event }) })
}

function runnerOptions(resolved: ResolvedSubscription, { leaseMs, marginMs }: LeaseLimits): RunnerOptions {
  const { via, concurrency } = resolved
  // As many as the user wants to run at once; of a relay nobody has said so.
  const leastInHand = via === null ? concurrency : 1
  return { ...resolved, marginMs, tendEveryMs: heartbeatEveryMs(leaseMs), leastInHand }
}

interface KindParts<Delivery extends ClaimedDelivery> {
  readonly id: number
  readonly hand: Hand<Delivery>
  readonly backlog: Backlog<Delivery>
  readonly source: DeliverySource<Delivery>
  afterSettled(written: readonly Ended<Delivery>[]): void
  /** How many of the first results may be written in one batch. */
  together(results: readonly Ended<Delivery>[]): number
  /** The key whose later results wait until this one is written; null where none may follow before that, or without order. */
  turnOf(result: Ended<Delivery>): string | null
  /** Whether something in hand has to be written before this one may be DONE. */
  hasUnsettledBefore(delivery: Delivery): boolean
  /** Whether it may be DONE now: nothing that comes before it is unwritten, or to be run again. */
  mayBeDone(delivery: Delivery): boolean
  /** Resolves when what `afterSettled` began is done. */
  idle(): Promise<void>
}

/** Committed with its handler's transaction, a delivery must not be DONE before what was done before it. */
async function untilItsTurn<Delivery extends ClaimedDelivery>(
  delivery: Delivery,
  kind: Pick<KindParts<Delivery>, 'hasUnsettledBefore' | 'mayBeDone'>,
  settler: { flush(): Promise<void> },
): Promise<void> {
  if (kind.hasUnsettledBefore(delivery)) await settler.flush()
  if (!kind.mayBeDone(delivery)) throw new OutOfTurnError(delivery.event)
}

/** What writes the results of a runner, which is made after it. */
function composeSettler<Delivery extends ClaimedDelivery>(
  env: WorkerEnvironment,
  { batchSize, definition }: ResolvedSubscription,
  kind: Pick<KindParts<Delivery>, 'together' | 'turnOf'>,
  runner: () => Runner<Delivery>,
): Settler<Ended<Delivery>> {
  const { clock, random, giveUp, observer, store } = env
  return new Settler<Ended<Delivery>>({
    together: (results) => kind.together(results),
    turnOf: (result) => kind.turnOf(result),
    settle: (batch) => store.settle(batch),
    clock,
    random,
    batchSize,
    giveUp,
    onSettled: (batch, report, doubt) => runner().settled(batch, report, doubt),
    onRefused: (item, error) => runner().unwritten(item, error),
    onWaiting: (item) => runner().unwritten(item),
    onOutrun: (behind, lost) => runner().outrun(behind, lost),
    onGivenUp: (batch, error) => runner().gaveUp(batch, error),
    onOutage: (error) => observer({ kind: 'error', during: 'settle', error, subscription: definition.name }),
  })
}

function compose<Delivery extends ClaimedDelivery>(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  kind: KindParts<Delivery>,
): RunningSubscription & { readonly runner: Runner<Delivery> } {
  const { definition, retry } = resolved
  const { clock, random, observer, limits, store } = env
  const settler = composeSettler(env, resolved, kind, (): Runner<Delivery> => runner)
  const session = openTransport(env, resolved)
  const handlers =
    session === null
      ? dispatcherOf<Delivery>(env, resolved, async (delivery, tx) => {
          await untilItsTurn(delivery, kind, settler)
          await env.services.complete(delivery, tx)
        })
      : new BatchDispatcher<Delivery>({
          session,
          clock,
          batchSize: resolved.batchSize,
          beforeSend: () => runner.expire(env.leaseClock.monotonicMs()),
        })
  const runner = new Runner<Delivery>({
    source: kind.source,
    backlog: kind.backlog,
    hand: kind.hand,
    afterSettled: (written) => kind.afterSettled(written),
    soloGate: env.soloGate,
    random,
    observer,
    clock: env.leaseClock,
    subscription: { id: kind.id, name: definition.name },
    options: runnerOptions(resolved, limits),
    handlers,
    markAlone: (delivery) => store.markAlone(delivery),
    hasStrays: () => env.strays.any,
    results: settler,
    decide: (delivery: Delivery, outcome: DeliveryOutcome): Settlement => {
      env.onAttemptEnded()
      return decide(delivery, outcome, retry, random)
    },
  })
  const flush = async (): Promise<void> => {
    await settler.finish()
    await kind.idle()
  }
  return { runner, reader: null, redrive: resolved.redrive, flush, close: async () => session?.close() }
}
