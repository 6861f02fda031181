import { describe, expect, test } from 'vitest'
import { describeFailure } from '../../src/cli/failure.ts'
import { messagesIn } from '../../src/cli/messages/dictionaries.ts'
import { problemInKorean } from '../../src/cli/messages/problems-ko.ts'
import {
  createOutbox,
  defineEvents,
  emailSink,
  exponential,
  InvalidOptionsError,
  pagerDutySink,
  relay,
  schedule,
  slackSink,
  subscription,
  unchecked,
  webhookSink,
} from '../../src/index.ts'
import { deadLetterTopic, kafka, relayProducer } from '../../src/kafka/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { expectNoEnglish } from './korean.ts'

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
  OrderPaid: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>(), storedAs: 'PAID' },
})
const pool = { connect: () => Promise.reject(new Error('no server')), query: () => undefined }
const on = { '*': () => undefined }

function refused(call: () => unknown): InvalidOptionsError {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionsError)
    return error as InvalidOptionsError
  }
  throw new Error('It was not refused.')
}

const outbox = (more: object = {}) =>
  createOutbox({ store: postgresStore({ pool: pool as never }), events, ...more })
const worker = (subscriptions: unknown, options: object = {}): unknown =>
  outbox().worker(subscriptions as never, options)
const declared = (name: unknown, options: object): unknown => worker([{ name, options }])

const WRONG: Readonly<Record<string, () => unknown>> = {
  'the store': () => postgresStore(pool as never),
  'the options of a store': () => postgresStore({ pool: 1, schema: 5, pol: 2 } as never),
  'what is no object': () => createOutbox(null as never),
  'the outbox': () =>
    outbox({
      store: 1,
      events: {},
      notify: 'yes',
      logger: { info: 1 },
      clock: {},
      random: 5,
      metrics: [],
      sensitive: { audit: 'hide', dashbord: 'mask' },
      maxPayloadBytes: -1,
      retentoin: {},
      colour: 'red',
    }),
  retention: () =>
    outbox({
      retention: {
        hour: 24,
        share: 2,
        pauseMs: -1,
        batchsize: 5,
        policies: [
          { name: 'a b', stream: '', keepDays: 'x', action: 'burn', mask: 1, requireExport: 'no' },
          { name: 'a', stream: '*', keepDays: 1, action: 'delete', mask: true, archive: {} },
          { name: 'a', stream: '*', keepDays: 1, action: 'archive' },
          {
            name: 'b',
            stream: '*',
            keepDays: 1,
            action: 'archive',
            archive: { schema: '', table: '가'.repeat(30) },
          },
          7,
        ],
      },
    }),
  'no policies': () => outbox({ retention: { policies: [] } }),
  'retention as a list': () => outbox({ retention: [] }),
  'the worker': () =>
    worker([], {
      leaseMs: 1,
      drainMs: 0.5,
      unmatched: 'drop',
      workerId: `w\0`,
      observers: [1],
      listen: 'no',
      handleSignals: 1,
      concurrency: 4,
    }),
  'a long name of a worker': () => worker([1], { workerId: 'w'.repeat(201), observers: 5 }),
  alerts: () =>
    worker([subscription('a', { on }), subscription('a', { on })], {
      alerts: {
        sinks: [1, { sink: 2, rules: [] }, { sink: slackSink({ url: 'https://x' }), rules: ['dead letter'] }],
        language: 'de',
        source: '',
        meanRetries: -1,
        everyMs: 1,
        dead: 1.5,
        coolDown: 5,
      },
    }),
  'alerts that are no object': () => worker([subscription('a', { on })], { alerts: { sinks: 'slack' } }),
  'a subscription': () =>
    declared('mailer!', {
      on: { OrderPlacd: () => undefined, PAID: () => undefined, Nothing: 5 },
      streams: ['shop.order'],
      concurrency: 0,
      order: 'fifo',
      onDead: 'block',
      lanes: 3,
      startFrom: 'yesterday',
      engine: 'kafka',
      walBudgetBytes: 1,
      maxAttempts: 0,
      retry: 5,
      timeoutMs: 0,
      middleware: 5,
      classify: 1,
      maxRetries: 3,
      backoff: 1,
      events: [],
      redrive: { name: '', codes: [], after: 'soon', factor: 0, atMost: 0 },
    }),
  'another subscription': () =>
    declared('mailer', {
      on: {},
      order: 'total',
      lanes: 4,
      startFrom: new Date(Date.UTC(20_000, 1)),
      redrive: { name: 'p', codes: ['bad code'], after: '1m' },
      streams: ['a\0'],
    }),
  'one at a time': () => declared('m', { on, oneAtATime: true, order: 'none', lanes: 2, concurrency: 3 }),
  'unordered lanes': () => declared('m', { on, lanes: 2, onDead: 'block', streams: ['\ud800'] }),
  'a subscription without handlers': () => declared('m', { on: 5 }),
  'a relay': () => relay('r', { via: {}, on, classify: () => undefined } as never),
  'a back-off': () => exponential({ base: 'x', factor: 0, jitter: 5, max: 1 } as never),
  'a cap': () => exponential({ base: '10s', cap: '1s' }),
  'no base': () => exponential({ base: 0, cap: '1s' }),
  'a schedule': () => schedule('soon' as never),
  slack: () => slackSink({ url: 'slack', chanel: 1 } as never),
  'no slack': () => slackSink(1 as never),
  pagerduty: () => pagerDutySink({ routingKey: '' }),
  'a webhook': () => webhookSink({ url: 'x', secret: 'short' }),
  kafka: () =>
    kafka({
      producer: {},
      topic: 5,
      key: 'id',
      format: { envelop: {} },
      timeoutMs: 0,
      topics: 1,
    } as never),
  'topics by type': () =>
    kafka({
      producer: () => undefined,
      topic: { OrderPlaced: 'a b', OrderPaid: '{aggregate}', Other: 1 },
      format: { cloudEvents: 'xml', source: '' },
    } as never),
  'no topics': () => kafka({ producer: () => undefined, topic: {}, format: 'avro' } as never),
  'a producer that is not idempotent': () =>
    kafka({ producer: () => ({ isIdempotent: () => false }) as never }).open({} as never),
  'brokers and credentials': () =>
    relayProducer({ brokers: ['kafka-1'], ssl: 'yes', sasl: { mechanism: 'aws', username: '' } } as never),
  'no brokers': () => relayProducer({ brokers: [], sasl: 5, connectionTimeout: 0 } as never),
  'a dead letter topic': () => deadLetterTopic({ producer: 5, topic: 'a b' } as never),
  'a catalogue': () =>
    defineEvents(
      {
        'order placed': { stream: 'a b', aggregate: '', schema: 5 },
        PlaceOrder: { stream: 's', aggregate: 'a', kind: 'wish', colour: 'red', sensitive: 'card' },
        OrderPlaced: { stream: 's', aggregate: 'a', storedAs: 'PAID', version: 0, oldestVersion: 'x' },
        OrderPaid: { stream: 's', aggregate: 'a', storedAs: 'PAID', version: 1, oldestVersion: 2 },
        OrderSent: { stream: 's', aggregate: 'a', version: 3, upcast: { 1: 5, 7: (old: unknown) => old } },
        OrderKept: { stream: 's', aggregate: 'a', upcast: { 1: (old: unknown) => old } },
        OrderLost: { stream: 's', aggregate: 'a', version: 2, upcast: { 2: (old: unknown) => old } },
        OrderHeld: { stream: 'old.s', aggregate: 'a', jsonSchema: 5, upcast: 5, orderingKey: 5, sequence: 5 },
        OrderSeen: {
          stream: 's',
          aggregate: 'a',
          storedAs: 5,
          jsonSchema: { type: 'object', properties: {}, additionalProperties: false },
          sensitive: ['card', 'a..b', { path: 'x', from: ['nowhere'] }],
          sensitiv: [],
        },
        OrderNone: 5,
      } as never,
      { refuse: [{ stream: 'old.*', reason: '쓰지 않습니다' }] },
    ),
  'the options of a catalogue': () => defineEvents({}, { names: 'loud', refuse: [5], nams: 1 } as never),
  'names in capitals': () =>
    defineEvents(
      { OrderPlaced: { stream: 's', aggregate: 'a', schema: unchecked<object>() } },
      { names: 'upper-snake' },
    ),
  'names by a pattern': () =>
    defineEvents(
      { OrderPlaced: { stream: 's', aggregate: 'a', schema: unchecked<object>() } },
      { names: /^shop/ },
    ),
  'names in pascal case': () =>
    defineEvents({ order_placed: { stream: 's', aggregate: 'a', schema: unchecked<object>() } }),
  'e-mail': () => emailSink({ transport: {}, from: 'a\nb', to: '' } as never),
}

describe('what is wrong with options is told in Korean', () => {
  test.each(Object.entries(WRONG))('%s', async (_, call) => {
    const error = refused(call)
    for (const problem of error.problems) expectNoEnglish(problemInKorean(problem))
    expectNoEnglish(describeFailure(error, await messagesIn('ko')).message)
  })

  test('with the names, the values and the limits of the English sentence', () => {
    expect(
      problemInKorean('subscription "mailer": lanes must be a whole number from 1 to 64, but is 100'),
    ).toBe('구독 "mailer": lanes: 1 이상 64 이하의 정수여야 합니다. 지금 값: 100')
    expect(problemInKorean('there is no option "concurency"; did you mean "concurrency"?')).toBe(
      '"concurency" 옵션은 없습니다. "concurrency"을(를) 쓰려고 하셨습니까?',
    )
    expect(problemInKorean("order must be one of 'none', 'aggregate', but is a list of 2")).toBe(
      "order: 'none', 'aggregate' 중 하나여야 합니다. 지금 값: 항목이 2개인 목록",
    )
  })

  test('and stands as it is where its form is not known', () => {
    expect(problemInKorean('the moon must be made of cheese')).toBe('the moon must be made of cheese')
  })
})
