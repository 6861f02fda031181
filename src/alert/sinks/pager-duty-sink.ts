import { createHash } from 'node:crypto'
import { isRecord, refuseProblems, unknownOptionProblems } from '../../runtime/option-checks.ts'
import { storableText } from '../../runtime/text.ts'
import type { Alert, AlertSink } from '../alert.ts'
import { postJson, urlProblem } from './post-json.ts'

/** Which PagerDuty service is woken. */
export interface PagerDutySinkOptions {
  /** The integration key of an Events API v2 integration. It is a secret: it never appears in logs or errors. */
  readonly routingKey: string
  /** @default 'https://events.pagerduty.com/v2/enqueue' */
  readonly url?: string
}

const OPTION_NAMES: readonly (keyof PagerDutySinkOptions)[] = ['routingKey', 'url']
const DEFAULT_URL = 'https://events.pagerduty.com/v2/enqueue'
// The limits of the Events API.
const LONGEST_SUMMARY = 1_024
const LONGEST_KEY = 255

/**
 * Triggers an incident for each alarm and resolves it when the condition is over. A notice, such as of a dead letter,
 * triggers one that a person closes: nothing ends it. Reports are not sent.
 */
export function pagerDutySink(options: PagerDutySinkOptions): AlertSink {
  refuseProblems('pagerDutySink', pagerDutyProblems(options))
  const { routingKey, url = DEFAULT_URL } = options
  return {
    name: 'PagerDuty',
    send: async (alert, signal) => {
      if (alert.kind === 'report') return
      await postJson({ url, body: JSON.stringify(pagerDutyEvent(alert, routingKey)), signal })
    },
  }
}

/** The event: the same `dedup_key` for an alarm, its repetitions and its end, so that they are one incident. */
export function pagerDutyEvent(alert: Alert, routingKey: string): object {
  return {
    routing_key: routingKey,
    event_action: alert.kind === 'recovered' ? 'resolve' : 'trigger',
    dedup_key: dedupKey(`${alert.source}:${alert.key}`),
    client: 'Commitpost',
    payload: {
      summary: storableText(`[${alert.source}] ${alert.title}`, LONGEST_SUMMARY),
      source: alert.source,
      severity: alert.severity,
      timestamp: alert.at.toISOString(),
      component: 'commitpost',
      group: alert.source,
      class: alert.rule,
      custom_details: {
        ...Object.fromEntries(alert.facts.map(({ label, value }) => [label, value])),
        ...(alert.advice === null ? {} : { advice: alert.advice }),
      },
    },
  }
}

function dedupKey(key: string): string {
  return key.length <= LONGEST_KEY ? key : createHash('sha256').update(key).digest('hex')
}

// What was given is not shown: it may be the key itself.
function pagerDutyProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return ['the argument must be an object: { routingKey }']
  const { routingKey, url } = options
  const isKey = typeof routingKey === 'string' && /^[!-~]{1,100}$/.test(routingKey)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    isKey ? null : 'routingKey must be the integration key of a PagerDuty service',
    url === undefined ? null : urlProblem('url', url),
  ]
}
