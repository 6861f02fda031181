import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Clock, systemClock } from '../../runtime/clock.ts'

/** A signed request, as it came in. */
export interface SignedRequest {
  /** By their names in small letters, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The bytes of the body as text, before anything has parsed them. */
  readonly body: string
  readonly secret: string
  /**
   * How old, or how far in the future, a request may be, in milliseconds: an older one may be somebody's recording.
   * @default 300_000
   */
  readonly toleranceMs?: number
  /** Time, for tests. */
  readonly clock?: Clock
}

const TOLERANCE_MS = 300_000
const VERSION = 'v1'

/** The headers of a signed webhook: an id, the second it is sent, and the HMAC-SHA256 of both and the body. */
export function signedHeaders(id: string, at: Date, body: string, secret: string): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000))
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `${VERSION},${signature(id, timestamp, body, secret)}`,
  }
}

/** True for a request that whoever knows the secret sent, and sent just now. For the side that receives webhooks. */
export function verifyWebhook(request: SignedRequest): boolean {
  const { headers, body, secret, toleranceMs = TOLERANCE_MS, clock = systemClock } = request
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': given } = headers
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof given !== 'string') return false
  if (!/^\d{1,12}$/.test(timestamp)) return false
  if (Math.abs(clock.now().getTime() - Number(timestamp) * 1_000) > toleranceMs) return false
  const wanted = Buffer.from(`${VERSION},${signature(id, timestamp, body, secret)}`)
  // Several, while a secret is being changed.
  return given.split(' ').some((each) => {
    const bytes = Buffer.from(each)
    return bytes.length === wanted.length && timingSafeEqual(bytes, wanted)
  })
}

/** The bytes of a secret: those in base64 after `whsec_`, or the text itself. */
function keyOf(secret: string): Buffer {
  const prefix = 'whsec_'
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.from(secret)
}

function signature(id: string, timestamp: string, body: string, secret: string): string {
  return createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
}
