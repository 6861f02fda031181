import { property } from '../../runtime/property.ts'
import { SinkError } from './sink-error.ts'

/** What is posted, and where. */
export interface JsonPost {
  readonly url: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

// What services answer to a mistake, as `invalid_blocks`: one word, and so no echo of what was sent.
const HARMLESS_ANSWER = /^[a-z_]{1,40}$/
const LONGEST_ANSWER = 200
const CODE = /^[A-Z][A-Z0-9_]{2,40}$/

/** Posts JSON and resolves when the answer is a success. Follows no redirect: it would carry the alert elsewhere. */
export async function postJson({ url, body, headers, signal }: JsonPost): Promise<void> {
  const response = await answerTo(url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    redirect: 'manual',
    signal,
  })
  if (response.ok) {
    await response.body?.cancel().catch(() => undefined)
    return
  }
  throw new SinkError(`it answered ${response.status}${await harmlessAnswer(response)}`, {
    permanent: isPermanent(response.status),
    retryAfterMs: retryAfterMs(response.headers.get('retry-after')),
  })
}

/** What is wrong with the address of a sink, as a sentence without the address; null if nothing is. */
export function urlProblem(name: string, url: unknown): string | null {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null
  const isFine = parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:')
  return isFine ? null : `${name} must be an address that begins with https:// or http://`
}

async function answerTo(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    // The message of the network may name the address: only its code is told.
    const code = property(property(error, 'cause'), 'code') ?? property(error, 'code')
    const reason = typeof code === 'string' && CODE.test(code) ? ` (${code})` : ''
    throw new SinkError(`it could not be reached${reason}`, { permanent: false })
  }
}

async function harmlessAnswer(response: Response): Promise<string> {
  const text = await firstOf(response).catch(() => '')
  return HARMLESS_ANSWER.test(text) ? ` (${text})` : ''
}

async function firstOf(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return new TextDecoder().decode(value?.slice(0, LONGEST_ANSWER)).trim()
}

// What the other side understood and refused will be refused again; it may only have been too much, or too early.
function isPermanent(status: number): boolean {
  return status >= 300 && status < 500 && ![408, 425, 429].includes(status)
}

function retryAfterMs(header: string | null): number | null {
  return header !== null && /^\d{1,6}$/.test(header) ? Number(header) * 1_000 : null
}
