import type { Clock } from '../runtime/clock.ts'
import type { OperatorAct } from '../runtime/operator-act.ts'
import type { RedriveProgress, RedriveSettings, RedriveStore } from '../store/redrive-store.ts'

/** How a plan is applied, by whom and why. */
export interface ApplyAct extends OperatorAct {
  /**
   * How many dead letters are re-driven in a second, over all who apply the plan together. Null: as fast as they are
   * handled.
   * @default 100
   */
  readonly ratePerSecond?: number | null
  /**
   * Stops by itself once this share of those that ended failed again, 0 to 1. Null: never.
   * @default 0.5
   */
  readonly stopWhenFailedShare?: number | null
  /**
   * The share is not judged before so many have ended.
   * @default 20
   */
  readonly minSample?: number
  /**
   * How many may be on their way at once: so many may fail before it is noticed.
   * @default 100
   */
  readonly atOnce?: number
  /**
   * True goes on with a plan that stopped by itself.
   * @default false
   */
  readonly resume?: boolean
  /** Told how far it is, after every step. */
  readonly onProgress?: (progress: RedriveProgress) => void
  /** Ends the waiting: the plan stays as it is and can be applied again. */
  readonly signal?: AbortSignal
}

/** What re-driving needs of the store. */
export type RedrivingStore = RedriveStore & { notifyWorkers(): Promise<void> }

const DEFAULT_RATE = 100
const DEFAULT_SHARE = 0.5
const DEFAULT_SAMPLE = 20
const DEFAULT_AT_ONCE = 100

/** How soon to look again at what is on its way, at first and at last. */
const FIRST_LOOK_MS = 20
const LAST_LOOK_MS = 1_000

/** Steps through a plan until it has come to an end. Nothing is kept here: the database knows how far it is. */
export async function applyPlan(
  store: RedrivingStore,
  clock: Clock,
  planId: string,
  act: ApplyAct,
): Promise<RedriveProgress> {
  const { operator, note = null, onProgress = () => undefined, signal } = act
  await store.beginRedrive(planId, operator, settingsOf(act))
  const isAborted = (): boolean => signal?.aborted === true
  let lookMs = FIRST_LOOK_MS
  for (;;) {
    const step = await store.stepRedrive(planId, operator, note)
    // Polling finds them too, only later.
    if (step.driven > 0) await store.notifyWorkers().catch(() => undefined)
    const progress = await store.redriveProgress(planId)
    onProgress(progress)
    if (step.state !== 'applying' || isAborted()) return progress
    lookMs = step.driven > 0 ? FIRST_LOOK_MS : Math.min(lookMs * 2, LAST_LOOK_MS)
    await clock.sleep(Math.max(step.waitMs, lookMs), signal)
    if (isAborted()) return progress
  }
}

function settingsOf(act: ApplyAct): RedriveSettings {
  const { ratePerSecond = DEFAULT_RATE, stopWhenFailedShare = DEFAULT_SHARE } = act
  const { minSample = DEFAULT_SAMPLE, atOnce = DEFAULT_AT_ONCE, resume = false } = act
  return { ratePerSecond, stopWhenFailedShare, minSample, atOnce, resume }
}
