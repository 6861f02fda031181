import type { Alert, AlertSink } from '../../src/alert/alert.ts'
import type { SubscriptionFigures } from '../../src/store/alert-store.ts'

/** An alert about a dead letter, with texts that a service might take for its own. */
export function deadLetterAlert(changes: Partial<Alert> = {}): Alert {
  return {
    id: '01a1e1c7-5e93-776f-936a-babd9723946b',
    kind: 'notice',
    rule: 'deadLetter',
    key: 'deadLetter:17',
    severity: 'error',
    source: 'shop',
    heading: 'DLQ ALERT',
    title: 'OrderPlaced failed for good for subscription "mailer"',
    facts: [
      { label: 'Event ID', value: '01a1e1c7-5e93-776f-936a-babd9723946b' },
      { label: 'Error', value: 'HANDLER_ERROR: <!channel> a & b <https://evil.example|click> 한글' },
    ],
    advice: 'commitpost dlq show 17',
    at: new Date('2026-11-16T03:04:05.678Z'),
    since: null,
    data: { deadLetter: '17' },
    ...changes,
  }
}

/** An alarm that is on, or over. */
export function alarmAlert(kind: 'alarm' | 'recovered'): Alert {
  return deadLetterAlert({
    kind,
    rule: 'stuckPending',
    key: 'stuckPending:mailer',
    severity: kind === 'alarm' ? 'critical' : 'info',
    since: new Date('2026-11-16T03:00:00.000Z'),
  })
}

/** A sink that remembers. */
export function recordingSink(): AlertSink & { readonly alerts: Alert[] } {
  const alerts: Alert[] = []
  return { name: 'memory', takesReports: true, alerts, send: async (alert) => void alerts.push(alert) }
}

/** A subscription at rest. */
export function figuresOf(changes: Partial<SubscriptionFigures> = {}): SubscriptionFigures {
  return {
    name: 'mailer',
    pausedBy: null,
    pending: 0,
    processing: 0,
    stuck: 0,
    oldestPendingSeconds: null,
    dead: 0,
    meanRetries: null,
    log: null,
    workers: 1,
    ...changes,
  }
}
