import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  type Alert,
  createMasking,
  defineEvents,
  NonRetryableError,
  type OutboxOptions,
  type SensitiveOptions,
  type Sink,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { openTelemetry } from '../../src/observe/otel/index.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { eventually, openSystem, recordingLogger, rejection, type System } from './support.ts'
import { TraceRecorder } from './tracing-support.ts'

const EMAIL = 'hong.gildong@example.com'
const CARD = '4111-1111-1111-1111'
const OPERATOR = 'admin@example.com'

const members = defineEvents({
  MemberJoined: {
    stream: 'umbra.member',
    aggregate: 'member',
    schema: unchecked<{ email: string; card: { number: string }; plan: string }>(),
    sensitive: ['email', 'card.number'],
  },
})
type Members = typeof members

const PAYLOAD = { email: EMAIL, card: { number: CARD }, plan: 'yearly' }

/** What every sink got of one event that failed, in the words of whoever reads it. */
type Seen = Readonly<Record<Sink | 'letters' | 'group' | 'why' | 'trace', string>>

async function everySink(sensitive: SensitiveOptions): Promise<Seen> {
  const { logger, lines } = recordingLogger()
  const alerts: Alert[] = []
  using traces = new TraceRecorder()
  await using system = await openSystem(members, { logger, sensitive, tracing: openTelemetry() })
  const worker = system.outbox.worker(
    [
      system.outbox.subscription('welcome', {
        order: 'aggregate',
        on: {
          MemberJoined: ({ payload }) => {
            throw new NonRetryableError(
              `no mailbox ${payload.email}, card ${payload.card.number}, ${payload.plan}`,
            )
          },
        },
      }),
    ],
    { alerts: { sinks: [{ send: async (alert) => void alerts.push(alert) }] } },
  )
  await worker.active()
  const eventId = await system.publish('MemberJoined', { aggregateId: 7, payload: PAYLOAD })
  await eventually('somebody was told', () => alerts.some(({ rule }) => rule === 'deadLetter'))
  await worker.stop()
  const spans = traces.named('process umbra.member')
  return {
    ...(await readSinks(system, eventId)),
    log: JSON.stringify(lines),
    alert: JSON.stringify(alerts),
    trace: JSON.stringify(spans.map(({ status, attributes, events }) => [status, attributes, events])),
  }
}

async function readSinks(
  { outbox }: System<Members>,
  eventId: string,
): Promise<Omit<Seen, 'log' | 'alert' | 'trace'>> {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-masking-'))
  try {
    const letters = []
    for await (const letter of outbox.deadLetters.export()) letters.push(letter)
    const [listed] = await outbox.deadLetters.list()
    const shown = await outbox.deadLetters.show(listed?.id ?? '')
    const exported = await outbox.exports.run({
      stream: 'umbra.member',
      directory,
      operator: OPERATOR,
      waitMs: PATIENCE_MS,
    })
    const files = await readdir(exported?.location ?? '')
    const texts = await Promise.all(
      files.map(async (name) => {
        const bytes = await readFile(join(exported?.location ?? '', name))
        return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
      }),
    )
    return {
      dashboard: JSON.stringify([listed, shown, await outbox.deadLetters.blocked()]),
      group: JSON.stringify(await outbox.deadLetters.group()),
      why: JSON.stringify(await outbox.proof.why(eventId)),
      letters: JSON.stringify(letters),
      export: texts.join(''),
      audit: JSON.stringify(outbox.masking.payload({ type: 'MemberJoined', payload: PAYLOAD }, 'audit')),
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}

describe('sensitive fields', () => {
  test('U10 never appear in any sink: logs, alerts, traces, dashboard, exports, audit archive', async () => {
    const seen = await everySink({})
    for (const [sink, text] of Object.entries(seen)) {
      expect(text, sink).not.toContain(EMAIL)
      expect(text, sink).not.toContain(CARD)
    }
    // Only they are hidden: the rest is there to work with.
    for (const sink of ['log', 'alert', 'trace', 'dashboard', 'why', 'letters', 'export', 'audit'] as const) {
      expect(seen[sink], sink).toContain('yearly')
    }
    expect(seen.log).toContain('no mailbox ***, card ***, yearly')
  })

  test('U10 a full trail stays possible: a sink that must keep them gets them', async () => {
    const seen = await everySink({
      log: 'keep',
      alert: 'keep',
      dashboard: 'keep',
      export: 'keep',
      audit: 'keep',
    })
    for (const [sink, text] of Object.entries(seen)) {
      expect(text, sink).toContain(EMAIL)
    }
  })

  test('U10 are hidden from the sinks that the field names, and shown to the others', () => {
    const events = defineEvents({
      MemberJoined: {
        stream: 'umbra.member',
        aggregate: 'member',
        schema: unchecked<{ email: string }>(),
        sensitive: [{ path: 'email', from: ['log', 'alert'] }],
      },
    })
    const masking = createMasking(events, { alert: 'keep' })
    const event = { type: 'MemberJoined', payload: { email: EMAIL } }
    expect(masking.payload(event, 'log')).toEqual({ email: '***' })
    expect(masking.payload(event, 'alert')).toEqual({ email: EMAIL })
    expect(masking.payload(event, 'audit')).toEqual({ email: EMAIL })
    expect(masking.payload({ ...event, type: 'Unheard' }, 'audit')).toBe('***')
    expect(createMasking(null).payload(event, 'dashboard')).toBe('***')
  })

  test('U10 L11 who sees all of a dead letter is recorded before it is shown', async () => {
    await using system = await openSystem(members)
    await failOne(system)
    const { deadLetters } = system.outbox
    const [letter] = await deadLetters.list()
    const id = letter?.id ?? ''
    expect(letter?.payload).toEqual({ ...PAYLOAD, email: '***', card: { number: '***' } })
    const reveal = { operator: OPERATOR, note: '고객 문의' }
    expect((await deadLetters.show(id, { reveal })).payload).toEqual(PAYLOAD)
    expect((await deadLetters.list({ stream: 'umbra.member' }, { reveal }))[0]?.payload).toEqual(PAYLOAD)
    for await (const each of deadLetters.export({}, { reveal })) expect(each.payload).toEqual(PAYLOAD)
    const logged = `select action, operator, note, target, affected from outbox_operator_log order by entry`
    expect(await system.rows(logged)).toMatchObject([
      { action: 'reveal', operator: OPERATOR, note: '고객 문의', target: { deadLetter: id }, affected: 1 },
      { action: 'reveal', target: { list: { stream: 'umbra.member' } }, affected: 1 },
      { action: 'reveal', target: { export: {} }, affected: 1 },
    ])
    const refused = await rejection(deadLetters.show(id, { reveal: { operator: '' } }))
    expect(refused).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(refused.message).toContain('reveal: operator must name who does this')
    expect(await system.count('outbox_operator_log')).toBe(3)
  })
})

async function failOne(system: System<Members>): Promise<void> {
  const worker = system.outbox.worker([
    system.outbox.subscription('welcome', {
      on: {
        MemberJoined: () => {
          throw new NonRetryableError('no')
        },
      },
    }),
  ])
  await worker.active()
  await system.publish('MemberJoined', { aggregateId: 7, payload: PAYLOAD })
  await eventually('it is dead', async () => (await system.count('outbox_dead_letter')) === 1)
  await worker.stop()
}

// The options of an outbox that are about masking are checked with all others.
test('U10 a rule for a sink that does not exist is refused: it would mask nothing, and nobody would notice', async () => {
  const wrong = { logs: 'keep', export: 'hide' } as unknown as SensitiveOptions
  const options: Partial<OutboxOptions<Members, Transaction>> = { sensitive: wrong }
  const refused = await rejection(openSystem(members, options as never))
  expect(refused).toMatchObject({ code: 'INVALID_OPTIONS' })
  expect(refused.message).toContain('sensitive: there is no option "logs"; did you mean "log"?')
  expect(refused.message).toContain("sensitive.export must be one of 'mask', 'keep', but is \"hide\"")
})
