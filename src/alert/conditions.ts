import type { Figures, OpenLetters, SubscriptionFigures } from '../store/alert-store.ts'
import type { ConditionRule } from './alert.ts'
import type { AlertRules } from './alert-options.ts'

/** Something that holds now and should not. */
export interface Condition {
  /** The same as long as it holds, for every worker. */
  readonly key: string
  readonly rule: ConditionRule
  /** Null where it is about all of them. */
  readonly subscription: SubscriptionFigures | null
  readonly value: number
  readonly threshold: number
}

/** What was seen. */
export interface Seen {
  readonly letters: OpenLetters
  /** Null where only dead letters were looked at. */
  readonly figures: Figures | null
  /** Null where it is not known yet. */
  readonly eventsPerSecond: number | null
}

/** How far to count so that every rule can be judged, and small numbers are shown as they are. */
export function mostToCount(rules: AlertRules): number {
  const thresholds = [rules.unresolved, rules.stuckPending, rules.unpublished, rules.dead]
  return Math.max(1_000, ...thresholds.map((threshold) => threshold ?? 0)) + 1
}

/** From when on a rule holds; null for one that is switched off, undefined for one that this version does not know. */
export function thresholdOf(rules: AlertRules, rule: string): number | null | undefined {
  const thresholds: Readonly<Record<ConditionRule, number | null>> = {
    unresolved: rules.unresolved,
    stuckPending: rules.stuckPending,
    unpublished: rules.unpublished,
    oldestPending: rules.oldestPendingMs,
    dead: rules.dead,
    meanRetries: rules.meanRetries,
    eventRate: rules.eventsPerSecond,
    workerMissing: rules.workerMissingMs,
    streamGap: rules.streamGapMs,
  }
  return Object.hasOwn(thresholds, rule) ? thresholds[rule as ConditionRule] : undefined
}

/** The conditions that hold, of all rules that are on. */
export function findConditions(rules: AlertRules, seen: Seen): readonly Condition[] {
  const { letters, figures, eventsPerSecond } = seen
  return [
    whole('unresolved', letters.count, rules.unresolved, (value, threshold) => value >= threshold),
    whole('eventRate', eventsPerSecond, rules.eventsPerSecond, exceeds),
    ...(figures?.subscriptions ?? []).flatMap((subscription) => ofSubscription(rules, subscription)),
  ].filter((condition) => condition !== null)
}

/** Whether it is about a log that nobody reads, and not about a delivery that waits. */
export function isOfLog({ rule, subscription, value }: Condition): boolean {
  if (rule !== 'workerMissing' || subscription === null || subscription.log === null) return false
  return value > (inMs(subscription.oldestPendingSeconds) ?? 0)
}

type Holds = (value: number, threshold: number) => boolean

const exceeds: Holds = (value, threshold) => value > threshold

function whole(
  rule: ConditionRule,
  value: number | null,
  threshold: number | null,
  holds: Holds,
): Condition | null {
  if (value === null || threshold === null || !holds(value, threshold)) return null
  return { key: rule, rule, subscription: null, value, threshold }
}

function ofSubscription(rules: AlertRules, subscription: SubscriptionFigures): readonly (Condition | null)[] {
  const { name, workers, log } = subscription
  const oldestMs = inMs(subscription.oldestPendingSeconds)
  // Where nobody reads it the server keeps its log, whether anything waits there or not.
  const unservedMs = log === null ? oldestMs : Math.max(oldestMs ?? 0, log.silentSeconds * 1_000)
  const condition = (
    rule: ConditionRule,
    value: number | null,
    threshold: number | null,
    holds: Holds = exceeds,
  ): Condition | null => {
    const found = whole(rule, value, threshold, holds)
    return found === null ? null : { ...found, key: `${rule}:${name}`, subscription }
  }
  return [
    condition('stuckPending', subscription.stuck, rules.stuckPending, (value, least) => value >= least),
    condition('unpublished', subscription.pending + subscription.processing, rules.unpublished),
    condition('oldestPending', oldestMs, rules.oldestPendingMs),
    condition('dead', subscription.dead, rules.dead),
    condition('meanRetries', subscription.meanRetries, rules.meanRetries),
    condition('workerMissing', workers === 0 ? unservedMs : null, rules.workerMissingMs),
    condition('streamGap', inMs(log?.gapSeconds), rules.streamGapMs, (age, longest) => age <= longest),
  ]
}

function inMs(seconds: number | null | undefined): number | null {
  return seconds === null || seconds === undefined ? null : seconds * 1_000
}
