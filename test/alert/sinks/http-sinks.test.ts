import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Alert, AlertSink } from '../../../src/alert/alert.ts'
import { pagerDutySink } from '../../../src/alert/sinks/pager-duty-sink.ts'
import { slackSink } from '../../../src/alert/sinks/slack-sink.ts'
import { verifyWebhook } from '../../../src/alert/sinks/webhook-signature.ts'
import { webhookSink } from '../../../src/alert/sinks/webhook-sink.ts'
import { ManualClock } from '../../../src/runtime/manual-clock.ts'
import { describeError } from '../../../src/runtime/text.ts'
import { deafUrl, Receiver } from '../receiver.ts'
import { alarmAlert, deadLetterAlert } from '../support.ts'

const SECRET = 'a secret of enough length'
const forever = new AbortController().signal
const send = (sink: AlertSink, alert: Alert = deadLetterAlert()): Promise<void> => sink.send(alert, forever)

interface SlackBlock {
  readonly type: string
  readonly text?: { readonly type: string; readonly text: string }
  readonly fields?: readonly { readonly type: string; readonly text: string }[]
}
interface SlackBody {
  readonly text: string
  readonly blocks: readonly SlackBlock[]
}

describe('D5 L7 Slack', () => {
  test('gets blocks within its limits, and texts of events as plain text', async () => {
    await using receiver = await Receiver.start()
    await send(slackSink({ url: receiver.url }))
    expect(receiver.requests).toMatchObject([
      {
        method: 'POST',
        path: '/services/T0/SECRET',
        headers: { 'content-type': 'application/json; charset=utf-8' },
      },
    ])
    const [body] = receiver.json<SlackBody>()
    expect(body?.text).toContain('DLQ ALERT [shop] OrderPlaced failed for good')
    expect(body?.blocks.map(({ type }) => type)).toEqual([
      'header',
      'section',
      'section',
      'section',
      'context',
    ])
    expect(body?.blocks[0]?.text).toMatchObject({ type: 'plain_text', text: 'DLQ ALERT · shop' })
    expect(body?.blocks[2]?.fields?.[1]).toEqual({
      type: 'mrkdwn',
      verbatim: true,
      text: '*Error*\nHANDLER_ERROR: &lt;!channel&gt; a &amp; b &lt;https://evil.example|click&gt; 한글',
    })
  })

  test('of a report with very many lines as much as it takes, and how many more there are', async () => {
    await using receiver = await Receiver.start()
    const facts = Array.from({ length: 200 }, (_, n) => ({ label: `s${n}`, value: 'v'.repeat(5_000) }))
    const title = 'x'.repeat(10_000)
    await send(slackSink({ url: receiver.url }), deadLetterAlert({ facts, title, source: 's'.repeat(100) }))
    const [body] = receiver.json<SlackBody>()
    expect(body?.blocks.length).toBeLessThanOrEqual(50)
    for (const { type, text, fields } of body?.blocks ?? []) {
      expect(text?.text.length ?? 0).toBeLessThanOrEqual(type === 'header' ? 150 : 3_000)
      expect(fields?.length ?? 0).toBeLessThanOrEqual(10)
      for (const field of fields ?? []) expect(field.text.length).toBeLessThanOrEqual(2_000)
    }
    const lines = body?.blocks.flatMap(({ fields }) => fields ?? []) ?? []
    expect(lines).toHaveLength(50)
    expect(lines[48]?.text).toMatch(/^\*s48\*/)
    expect(lines[49]?.text).toBe('*…*\n+151')
  })
})

describe('L7 PagerDuty', () => {
  const routingKey = 'R0123456789ABCDEF0123456789ABCDE'

  test('gets an event of the Events API v2, and its end under the same key', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = () => ({ status: 202, body: '{"status":"success"}' })
    const sink = pagerDutySink({ routingKey, url: receiver.url })
    await send(sink, alarmAlert('alarm'))
    await send(sink, alarmAlert('recovered'))
    const [alarm, end] = receiver.json<Record<string, unknown>>()
    expect(alarm).toEqual({
      routing_key: routingKey,
      event_action: 'trigger',
      dedup_key: 'shop:stuckPending:mailer',
      client: 'Commitpost',
      payload: {
        summary: '[shop] OrderPlaced failed for good for subscription "mailer"',
        source: 'shop',
        severity: 'critical',
        timestamp: '2026-11-16T03:04:05.678Z',
        component: 'commitpost',
        group: 'shop',
        class: 'stuckPending',
        custom_details: expect.objectContaining({ advice: 'commitpost dlq show 17' }) as unknown,
      },
    })
    expect(end).toMatchObject({ event_action: 'resolve', dedup_key: 'shop:stuckPending:mailer' })
  })

  test('gets keys and summaries within its limits, and no reports', async () => {
    await using receiver = await Receiver.start()
    const sink = pagerDutySink({ routingKey, url: receiver.url })
    await send(sink, deadLetterAlert({ kind: 'report', rule: 'report' }))
    await send(sink, deadLetterAlert({ key: 'k'.repeat(400), title: 't'.repeat(3_000) }))
    const [event] = receiver.json<{ dedup_key: string; payload: { summary: string } }>()
    expect(receiver.requests).toHaveLength(1)
    expect(event?.dedup_key).toMatch(/^[0-9a-f]{64}$/)
    expect(event?.payload.summary).toHaveLength(1_024)
  })
})

describe('a signed webhook', () => {
  test('carries the HMAC-SHA256 of id, time and body, which the receiver can check', async () => {
    await using receiver = await Receiver.start()
    const clock = new ManualClock(new Date('2026-11-16T03:04:06.999Z'))
    await send(webhookSink({ url: receiver.url, secret: SECRET, clock }), alarmAlert('alarm'))
    const { headers, body } = receiver.requests[0] ?? { headers: {}, body: '' }
    const timestamp = String(Date.parse('2026-11-16T03:04:06Z') / 1_000)
    const id = deadLetterAlert().id
    const hmac = createHmac('sha256', SECRET).update(`${id}.${timestamp}.${body}`).digest('base64')
    expect(headers).toMatchObject({
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${hmac}`,
    })
    expect(JSON.parse(body)).toMatchObject({
      type: 'commitpost.alert.alarm',
      timestamp: '2026-11-16T03:04:05.678Z',
      data: { id, rule: 'stuckPending', key: 'stuckPending:mailer', figures: { deadLetter: '17' } },
    })
    const signed = { headers, body, secret: SECRET, clock }
    expect(verifyWebhook(signed)).toBe(true)
    expect(verifyWebhook({ ...signed, body: `${body} ` })).toBe(false)
    expect(verifyWebhook({ ...signed, secret: 'another of the same length' })).toBe(false)
    expect(verifyWebhook({ ...signed, headers: { ...headers, 'webhook-signature': undefined } })).toBe(false)
    await clock.advance(301_000)
    expect(verifyWebhook(signed)).toBe(false)
  })

  test('takes a secret in base64', () => {
    const secret = `whsec_${Buffer.from(SECRET).toString('base64')}`
    const clock = new ManualClock()
    const timestamp = String(clock.now().getTime() / 1_000)
    const hmac = createHmac('sha256', SECRET).update(`id.${timestamp}.{}`).digest('base64')
    const headers = {
      'webhook-id': 'id',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,old v1,${hmac}`,
    }
    expect(verifyWebhook({ headers, body: '{}', secret, clock })).toBe(true)
  })
})

describe('what goes wrong', () => {
  const failureOf = (sink: AlertSink, signal = forever): Promise<unknown> =>
    sink.send(deadLetterAlert(), signal).then(
      () => 'taken',
      (error: unknown) => error,
    )

  test.each([
    [500, false],
    [503, false],
    [429, false],
    [400, true],
    [404, true],
    [302, true],
  ])('an answer of %i: refused for good is %s', async (status, permanent) => {
    await using receiver = await Receiver.start()
    receiver.answer = () => ({
      status,
      headers: { location: `${receiver.url}/elsewhere`, 'retry-after': '7' },
    })
    const error = await failureOf(slackSink({ url: receiver.url }))
    expect(error).toMatchObject({ message: `it answered ${status}`, permanent, retryAfterMs: 7_000 })
    expect(receiver.requests).toHaveLength(1)
  })

  test('a word of the service is told, an echo is not', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = (n) => ({
      status: 400,
      body: n === 0 ? 'invalid_blocks' : `no such hook: ${receiver.url}`,
    })
    const sink = slackSink({ url: receiver.url })
    expect(await failureOf(sink)).toMatchObject({ message: 'it answered 400 (invalid_blocks)' })
    expect(await failureOf(sink)).toMatchObject({ message: 'it answered 400' })
  })

  test('an address where nobody listens, without the address', async () => {
    const url = await deafUrl()
    const sinks = [
      slackSink({ url }),
      pagerDutySink({ routingKey: 'SECRET', url }),
      webhookSink({ url, secret: `SECRET ${SECRET}` }),
    ]
    for (const sink of sinks) {
      const error = await failureOf(sink)
      expect(error).toMatchObject({ message: 'it could not be reached (ECONNREFUSED)', permanent: false })
      expect(describeError(error)).not.toContain('SECRET')
    }
  })

  test('a server that never answers is given up when the signal says so', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = () => null
    const giveUp = new AbortController()
    const failed = failureOf(slackSink({ url: receiver.url }), giveUp.signal)
    await receiver.received(1)
    giveUp.abort(new Error('time is up'))
    expect(await failed).toMatchObject({ message: 'time is up' })
  })
})
