import type { SubscriptionFacts, TablesFacts } from '../store/doctor-facts.ts'
import type { JudgedFinding } from './finding.ts'

/** Judges leases, pauses, types of events and workers. */
export function examineSubscriptions(
  { subscriptions, types }: TablesFacts,
  knownTypes: readonly string[] | null,
): readonly JudgedFinding[] {
  return [
    ...orElse(leases(subscriptions), {
      check: 'leases',
      severity: 'ok',
      code: 'LEASES_SOUND',
      facts: {},
    }),
    ...orElse(pauses(subscriptions), { check: 'pauses', severity: 'ok', code: 'NONE_PAUSED', facts: {} }),
    ...storedTypes(types, knownTypes),
    ...orElse(workers(subscriptions), { check: 'workers', severity: 'ok', code: 'ALL_SERVED', facts: {} }),
  ]
}

function orElse(found: readonly JudgedFinding[], fine: JudgedFinding): readonly JudgedFinding[] {
  return found.length > 0 ? found : [fine]
}

function leases(subscriptions: readonly SubscriptionFacts[]): readonly JudgedFinding[] {
  return subscriptions
    .filter(({ lapsedLeases }) => lapsedLeases > 0)
    .map(({ subscription, lapsedLeases, lapsedSeconds }) => ({
      check: 'leases',
      severity: 'problem',
      code: 'LEASES_LAPSED',
      facts: { subscription, count: lapsedLeases, seconds: lapsedSeconds ?? 0 },
    }))
}

function pauses(subscriptions: readonly SubscriptionFacts[]): readonly JudgedFinding[] {
  return subscriptions.flatMap(({ subscription, pausedBy, pausedAt }): readonly JudgedFinding[] =>
    pausedBy === null || pausedAt === null
      ? []
      : [
          {
            check: 'pauses',
            severity: 'warning',
            code: 'PAUSED',
            facts: { subscription, by: pausedBy, at: pausedAt },
          },
        ],
  )
}

function storedTypes(
  stored: TablesFacts['types'],
  knownTypes: readonly string[] | null,
): readonly JudgedFinding[] {
  const check = 'types'
  if (knownTypes === null) return [{ check, severity: 'ok', code: 'TYPES_NOT_COMPARED', facts: {} }]
  const known = new Set(knownTypes)
  const types = stored.filter(({ eventType }) => !known.has(eventType))
  return types.length === 0
    ? [{ check, severity: 'ok', code: 'TYPES_KNOWN', facts: {} }]
    : [{ check, severity: 'warning', code: 'TYPES_UNKNOWN', facts: { types } }]
}

function workers(subscriptions: readonly SubscriptionFacts[]): readonly JudgedFinding[] {
  return subscriptions
    .filter(({ hasLiveWorker }) => !hasLiveWorker)
    .map(({ subscription, hasPending }) => ({
      check: 'workers',
      severity: hasPending ? 'problem' : 'warning',
      code: 'NO_WORKER',
      facts: { subscription, hasPending },
    }))
}
