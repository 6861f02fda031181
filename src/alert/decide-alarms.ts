import type { AlarmState } from '../store/alert-store.ts'
import type { Condition } from './conditions.ts'

/** What to do about one condition, and what to keep of it: by whether somebody could be told. */
export type AlarmStep =
  | {
      readonly kind: 'alarm'
      readonly condition: Condition
      readonly since: Date
      readonly ifTold: AlarmState
      readonly ifNot: AlarmState
    }
  | {
      readonly kind: 'recovered'
      readonly state: AlarmState
      readonly since: Date
      readonly ifTold: AlarmState
    }
  | { readonly kind: 'keep'; readonly state: AlarmState }
  | { readonly kind: 'forget'; readonly key: string }

/** When, and how long an alarm is not repeated. */
export interface AlarmTiming {
  readonly now: Date
  readonly coolDownMs: number
}

/**
 * One alarm for a condition, again only after the cool-down, and one notice when it is over. A condition that comes back
 * within the cool-down is kept quiet about until that is over; one nobody was told of ends without a word.
 */
export function decideAlarms(
  conditions: readonly Condition[],
  states: readonly AlarmState[],
  timing: AlarmTiming,
): readonly AlarmStep[] {
  const byKey = new Map(states.map((state) => [state.key, state]))
  const holding = new Set(conditions.map(({ key }) => key))
  return [
    ...conditions.map((condition) => stepOf(condition, byKey.get(condition.key), timing)),
    ...states.filter(({ key }) => !holding.has(key)).flatMap((state) => endOf(state, timing)),
  ]
}

function stepOf(condition: Condition, state: AlarmState | undefined, timing: AlarmTiming): AlarmStep {
  const { key, rule } = condition
  const since = state?.since ?? timing.now
  const toldAt = state?.toldAt ?? null
  const told = state !== undefined && state.since !== null && state.told
  const quiet: AlarmState = { key, rule, since, told, toldAt }
  if (toldAt !== null && !isOver(toldAt, timing)) return { kind: 'keep', state: quiet }
  const ifTold = { ...quiet, told: true, toldAt: timing.now }
  return { kind: 'alarm', condition, since, ifTold, ifNot: quiet }
}

function endOf(state: AlarmState, timing: AlarmTiming): readonly AlarmStep[] {
  const ended: AlarmState = { ...state, since: null, told: false }
  if (state.since !== null && state.told) {
    return [{ kind: 'recovered', state, since: state.since, ifTold: ended }]
  }
  if (state.toldAt === null || isOver(state.toldAt, timing)) return [{ kind: 'forget', key: state.key }]
  return state.since === null ? [] : [{ kind: 'keep', state: ended }]
}

function isOver(toldAt: Date, { now, coolDownMs }: AlarmTiming): boolean {
  return now.getTime() - toldAt.getTime() >= coolDownMs
}
