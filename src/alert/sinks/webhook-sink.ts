import { type Clock, systemClock } from '../../runtime/clock.ts'
import {
  isRecord,
  methodsProblem,
  refuseProblems,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import type { Alert, AlertSink } from '../alert.ts'
import { postJson, urlProblem } from './post-json.ts'
import { signedHeaders } from './webhook-signature.ts'

/** A service of your own, or any that takes signed JSON. */
export interface WebhookSinkOptions {
  /** Never appears in logs or errors. */
  readonly url: string
  /** At least 16 characters, or `whsec_` and base64. The receiver checks with it that an alert is from you. */
  readonly secret: string
  /** Time, for tests. */
  readonly clock?: Clock
}

const OPTION_NAMES: readonly (keyof WebhookSinkOptions)[] = ['url', 'secret', 'clock']
const SHORTEST_SECRET = 16

/** Posts each alert as JSON, signed by HMAC-SHA256 as standardwebhooks.com says. */
export function webhookSink(options: WebhookSinkOptions): AlertSink {
  refuseProblems('webhookSink', webhookProblems(options))
  const { url, secret, clock = systemClock } = options
  return {
    name: 'webhook',
    send: (alert, signal) => {
      const body = JSON.stringify(webhookBody(alert))
      return postJson({ url, body, headers: signedHeaders(alert.id, clock.now(), body, secret), signal })
    },
  }
}

/** What is posted. */
export function webhookBody(alert: Alert): object {
  const { id, kind, rule, key, severity, source, title, facts, advice, at, since, data } = alert
  const type = `commitpost.alert.${kind}`
  return {
    type,
    timestamp: at.toISOString(),
    data: {
      id,
      kind,
      rule,
      key,
      severity,
      source,
      title,
      facts,
      advice,
      since: since?.toISOString() ?? null,
      figures: data,
    },
  }
}

// What was given is not shown: it may be the address or the secret.
function webhookProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return ['the argument must be an object: { url, secret }']
  const { secret } = options
  const isSecret = typeof secret === 'string' && secret.length >= SHORTEST_SECRET
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    urlProblem('url', options['url']),
    isSecret ? null : `secret must be a text of at least ${SHORTEST_SECRET} characters`,
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
  ]
}
