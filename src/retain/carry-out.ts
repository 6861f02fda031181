import type { Clock } from '../runtime/clock.ts'
import type { RetentionPace, RetentionStep, RetentionStore } from '../store/retention-store.ts'

/** Who steps through a run, how, and who is told. */
export interface CarryOut {
  readonly store: RetentionStore
  readonly clock: Clock
  readonly runId: string
  /** The name it holds the run by. */
  readonly stepper: string
  readonly pace: RetentionPace
  /** Null for what the policy does by itself. */
  readonly act: { readonly operator: string; readonly note: string | null } | null
  readonly signal: AbortSignal
  /** Told after every batch. */
  readonly onStep: (step: RetentionStep) => void | Promise<void>
  /** Whether to wait for whoever carries it out at this moment. */
  readonly waitsForOthers: boolean
}

/** Others are asked for so often whether they are done, at least. */
const LONGEST_LOOK_MS = 1_000

/** Steps through a run until it is done or the signal aborts. Nothing is kept here: the database knows how far it is. */
export async function carryOut(run: CarryOut): Promise<void> {
  const { store, clock, runId, stepper, pace, act, signal, onStep, waitsForOthers } = run
  while (!signal.aborted) {
    const step = await store.stepRetention(runId, stepper, pace, act)
    await onStep(step)
    if (step.state === 'done') return
    if (step.state === 'busy' && step.waitMs > LONGEST_LOOK_MS && !waitsForOthers) return
    await clock.sleep(step.state === 'busy' ? Math.min(step.waitMs, LONGEST_LOOK_MS) : step.waitMs, signal)
  }
}
