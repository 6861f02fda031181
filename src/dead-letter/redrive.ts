import type { Clock } from '../runtime/clock.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import { refuseProblems } from '../runtime/option-checks.ts'
import type { RedriveFilter, RedrivePlan, RedriveProgress } from '../store/redrive-store.ts'
import { type ApplyAct, applyPlan, type RedrivingStore } from './apply-plan.ts'
import { applyProblems, filterProblems, planIdProblems } from './redrive-problems.ts'

/** Delivers many dead letters again: first a plan, which changes nothing, then its application. */
export interface Redrive {
  /**
   * Writes down which open dead letters would be delivered again, and tells how many of each subscription, event type
   * and key, and which would come too late for their order. It can be applied for a day.
   * @throws NOT_FOUND when nothing matches.
   */
  plan(filter?: RedriveFilter): Promise<RedrivePlan>
  /**
   * Re-drives the letters of a plan and resolves when all have ended, it stopped by itself, was cancelled or `signal`
   * aborted. After a crash call it again. Any number may do so at once.
   */
  apply(planId: string, act: ApplyAct): Promise<RedriveProgress>
  /** How far a plan is. @throws NotFoundError when there is none with this id. */
  status(planId: string): Promise<RedriveProgress>
  /** Ends a plan: nothing more of it is re-driven. What is on its way goes on. */
  cancel(planId: string, act: OperatorAct): Promise<void>
}

/** The plans of a store, with arguments checked before the database is asked. */
export function createRedrive(store: RedrivingStore, clock: Clock): Redrive {
  return {
    plan: async (filter = {}) => {
      refuseProblems('a plan', filterProblems(filter))
      return store.planRedrive(filter)
    },
    apply: async (planId, act) => {
      refuseProblems('applying a plan', [...planIdProblems(planId), ...applyProblems(act)])
      return applyPlan(store, clock, planId, act)
    },
    status: async (planId) => {
      refuseProblems('the status of a plan', planIdProblems(planId))
      return store.redriveProgress(planId)
    },
    cancel: async (planId, act) => {
      refuseProblems('cancelling a plan', [...planIdProblems(planId), ...actProblems(act)])
      await store.cancelRedrive(planId, act.operator, act.note ?? null)
    },
  }
}
