import { createOutbox, subscription } from '../../../src/index.ts'
import { type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import { events, type HostileSubscription, type Scene } from '../scene.ts'

const outboxOf = (does: string, says: string, options: (scene: Scene) => unknown): Refusal =>
  invalid(`createOutbox(${does})`, says, (scene) => createOutbox(wrong(options(scene))))

/** Good options with one that is not. */
const outboxWith = (does: string, says: string, option: object): Refusal =>
  outboxOf(`{ …, ${does} }`, says, ({ store }) => ({ store, events, ...option }))

export const outboxes: Group = {
  title: 'Options of createOutbox',
  rows: [
    outboxOf('', 'the argument must be an object, but is undefined', () => undefined),
    outboxOf('null', 'the argument must be an object, but is null', () => null),
    outboxOf(
      "'postgres://…'",
      'the argument must be an object, but is "postgres://',
      () => 'postgres://localhost',
    ),
    outboxOf('[]', 'the argument must be an object, but is a list of 0', () => []),
    outboxOf('{}', 'events must be a catalogue: defineEvents({ … }), but is undefined', () => ({})),
    outboxOf(
      '{ store: pool, events }',
      'store must be a store, such as postgresStore({ pool })',
      ({ pool }) => ({ store: pool, events }),
    ),
    outboxOf('{ store, events: {} }', 'events must be a catalogue', ({ store }) => ({ store, events: {} })),
    outboxWith("sensitive: { logs: 'keep' }", 'sensitive: there is no option "logs"; did you mean "log"?', {
      sensitive: { logs: 'keep' },
    }),
    outboxWith("sensitive: { log: 'hide' }", "sensitive.log must be one of 'mask', 'keep', but is \"hide\"", {
      sensitive: { log: 'hide' },
    }),
    outboxWith('maxPayloadByte: 5', 'did you mean "maxPayloadBytes"?', { maxPayloadByte: 5 }),
    outboxWith('maxPayloadBytes: 0', 'maxPayloadBytes must be a whole number from 1', { maxPayloadBytes: 0 }),
    outboxWith("maxPayloadBytes: '1MB'", 'maxPayloadBytes must be a whole number', {
      maxPayloadBytes: '1MB',
    }),
    outboxWith('maxPayloadBytes: NaN', 'but is NaN', { maxPayloadBytes: Number.NaN }),
    outboxWith("notify: 'no'", 'notify must be true or false, but is "no"', { notify: 'no' }),
    outboxWith('logger: {}', 'logger must have the methods debug, info, warn, error', { logger: {} }),
    outboxWith('logger: console.log', 'logger must have the methods', { logger: () => undefined }),
    outboxWith('ambientHeaders: {}', 'ambientHeaders must be a function, but is an object', {
      ambientHeaders: {},
    }),
    outboxWith('clock: Date', 'clock must have the methods now, monotonicMs, sleep', { clock: Date }),
    outboxWith('random: 0.5', 'random must be a function, but is 0.5', { random: 0.5 }),
    outboxWith('ids: {}', 'ids must have the methods eventId', { ids: {} }),
    outboxWith('two wrong at once', 'notify must be true or false', { notify: 1, random: 1 }),
  ],
}

const on = { OrderPlaced: () => undefined }

const workerOf = (does: string, says: string, subscriptions: unknown, options?: unknown): Refusal =>
  invalid(`outbox.worker(${does})`, says, ({ outbox }) =>
    options === undefined
      ? outbox.worker(wrong(subscriptions))
      : outbox.worker(wrong(subscriptions), wrong(options)),
  )

const subscribed = (does: string, says: string, option: object): Refusal =>
  workerOf(`[subscription('s', { …, ${does} })]`, says, [{ name: 's', options: { on, ...option } }])

const called = (does: string, name: unknown): Refusal =>
  workerOf(
    `[subscription(${does}, …)]`,
    'the name must be 1 to 100 letters, digits, dots, dashes or underscores',
    [{ name, options: { on } }],
  )

export const subscriptions: Group = {
  title: 'Subscriptions',
  rows: [
    workerOf('undefined', 'there must be a list of at least one subscription', undefined),
    workerOf("'mailer'", 'there must be a list of at least one subscription', 'mailer'),
    workerOf('[]', 'there must be a list of at least one subscription', []),
    workerOf('[undefined]', '[0] must be made with subscription(), but is undefined', [undefined]),
    workerOf('[{}]', '[0] must be made with subscription(), but is an object', [{}]),
    workerOf("[subscription('s')]", 'subscription "s": the options must be an object, but is undefined', [
      { name: 's', options: undefined },
    ]),
    workerOf('the same name twice', 'subscription "s" is listed more than once', [
      { name: 's', options: { on } },
      { name: 's', options: { on } },
    ]),
    called('undefined', undefined),
    called("''", ''),
    called("'a b'", 'a b'),
    called("'-x'", '-x'),
    called('101 characters', 'x'.repeat(101)),
    called('with a NUL', 'a\0'),
    called('with a line end', 'a\n'),
    called(`'x"; drop table outbox_event; --'`, 'x"; drop table outbox_event; --'),
    workerOf("[subscription('s', {})]", 'on must be an object of handlers by event name', [
      { name: 's', options: {} },
    ]),
    subscribed('on: {}', 'there must be at least one handler', { on: {} }),
    subscribed('on: []', 'on must be an object of handlers by event name', { on: [] }),
    subscribed('on: { OrderPlaced: 5 }', 'the handler of "OrderPlaced" must be a function, but is 5', {
      on: { OrderPlaced: 5 },
    }),
    subscribed('on: { OrderPlacd }', 'which is not in the catalogue; did you mean "OrderPlaced"?', {
      on: { OrderPlacd: () => 1 },
    }),
    subscribed('maxRetries: 3', 'there is no option "maxRetries"; use maxAttempts', { maxRetries: 3 }),
    invalid("subscription('s')", 'the options must be an object, but is undefined', () =>
      subscription('s', wrong(undefined)),
    ),
    invalid("subscription('s', { …, concurrency: 0 })", 'concurrency must be a whole number', () =>
      subscription('s', { on, concurrency: 0 }),
    ),
    invalid("outbox.subscription('s', { on: { OrderPlacd } })", 'did you mean "OrderPlaced"?', ({ outbox }) =>
      outbox.subscription('s', wrong({ on: { OrderPlacd: () => 1 } })),
    ),
    subscribed('maxAttemps: 3', 'there is no option "maxAttemps"; did you mean "maxAttempts"?', {
      maxAttemps: 3,
    }),
    subscribed('maxAttempts: 0', 'it must be a whole number from 1 to 10000, but is 0', { maxAttempts: 0 }),
    subscribed("maxAttempts: '5'", 'but is "5"', { maxAttempts: '5' }),
    subscribed('maxAttempts: Infinity', 'but is Infinity', { maxAttempts: Number.POSITIVE_INFINITY }),
    subscribed('concurrency: 0', 'concurrency must be a whole number from 1 to 10000, but is 0', {
      concurrency: 0,
    }),
    subscribed('batchSize: 10001', 'batchSize must be a whole number from 1 to 10000, but is 10001', {
      batchSize: 10_001,
    }),
    subscribed('pollMs: -1', 'pollMs must be a whole number', { pollMs: -1 }),
    subscribed("pollMinMs: '20ms'", 'pollMinMs must be a whole number', { pollMinMs: '20ms' }),
    subscribed("engine: 'kafka'", "engine must be one of 'queue', 'stream', but is \"kafka\"", {
      engine: 'kafka',
    }),
    subscribed(
      'walBudgetBytes: 1 GiB of a queue',
      "walBudgetBytes is for the log stream: add engine 'stream'",
      {
        walBudgetBytes: 1_024 ** 3,
      },
    ),
    subscribed('walBudgetBytes: 1', 'walBudgetBytes must be a whole number from 16777216', {
      engine: 'stream',
      walBudgetBytes: 1,
    }),
    subscribed('lanes: 65', 'lanes must be a whole number from 1 to 64, but is 65', {
      lanes: 65,
      order: 'aggregate',
    }),
    subscribed("drain: 'no'", 'drain must be true or false, but is "no"', { drain: 'no' }),
    subscribed('classify: 3', 'classify must be a function, but is 3', { classify: 3 }),
    subscribed('middleware: 5', 'middleware must be a list of functions, but is 5', { middleware: 5 }),
    subscribed('middleware: [null]', 'middleware[0] must be a function, but is null', { middleware: [null] }),
    subscribed('timeoutMs: 0', 'timeoutMs must be more than 0, or null for no limit, but is 0', {
      timeoutMs: 0,
    }),
    subscribed("timeoutMs: '1m'", 'timeoutMs must be more than 0', { timeoutMs: '1m' }),
    subscribed('retry: 5', 'retry must come from exponential(), schedule() or fixed()', { retry: 5 }),
    subscribed("startFrom: 'yesterday'", "startFrom must be 'now', 'beginning' or a valid Date", {
      startFrom: 'yesterday',
    }),
    subscribed('startFrom: an invalid Date', "startFrom must be 'now', 'beginning' or a valid Date", {
      startFrom: new Date('x'),
    }),
    subscribed('streams: []', 'streams must be a list of at least one stream name or pattern', {
      streams: [],
    }),
    subscribed("streams: 'shop.*'", 'streams must be a list', { streams: 'shop.*' }),
    subscribed('streams: [5]', 'streams must be a list', { streams: [5] }),
    subscribed("order: 'fifo'", "order must be one of 'none', 'aggregate', 'total', but is \"fifo\"", {
      order: 'fifo',
    }),
    subscribed("onDead: 'skip'", "onDead must be one of 'block', 'continue'", {
      onDead: 'skip',
      order: 'aggregate',
    }),
    subscribed("oneAtATime: 'yes'", 'oneAtATime must be true or false, but is "yes"', { oneAtATime: 'yes' }),
    subscribed('lanes: 4 without order', "lanes are for ordered subscriptions: add order 'aggregate'", {
      lanes: 4,
    }),
    refused(
      'a middleware that returns nothing',
      'INVALID_OPTIONS',
      'what middleware[0] returns must be a function',
      ({ outbox }) => {
        const middleware = [wrong(() => undefined)]
        return outbox
          .worker([outbox.subscription('wrapped', { on: { OrderPlaced: () => 1 }, middleware })])
          .start()
      },
    ),
  ],
}

const list: readonly HostileSubscription[] = [
  { name: 's', options: { on: { OrderPlaced: () => undefined } } },
]

const workerWith = (does: string, says: string, options: unknown): Refusal =>
  workerOf(`[…], ${does}`, says, list, options)

export const workers: Group = {
  title: 'Options of workers',
  rows: [
    workerWith('null', 'the options must be an object, but is null', null),
    workerWith("'fast'", 'the options must be an object, but is "fast"', 'fast'),
    workerWith('{ lease: 5 }', 'there is no option "lease"; did you mean "leaseMs"?', { lease: 5 }),
    workerWith('{ leaseMs: 99 }', 'leaseMs must be a whole number from 100 to 3600000, but is 99', {
      leaseMs: 99,
    }),
    workerWith("{ leaseMs: '30s' }", 'leaseMs must be a whole number', { leaseMs: '30s' }),
    workerWith('{ drainMs: -1 }', 'drainMs must be a whole number from 0', { drainMs: -1 }),
    workerWith("{ unmatched: 'ignore' }", "unmatched must be one of 'report', 'dead-letter'", {
      unmatched: 'ignore',
    }),
    workerWith('{ observers: fn }', 'observers must be a list of functions, but is a function', {
      observers: () => undefined,
    }),
    workerWith('{ observers: [5] }', 'observers[0] must be a function, but is 5', { observers: [5] }),
    workerWith('{ logger: {} }', 'logger must have the methods', { logger: {} }),
    workerWith("{ workerId: '' }", 'workerId must be text that is not empty', { workerId: '' }),
    workerWith('{ workerId: 5 }', 'workerId must be text that is not empty, but is 5', { workerId: 5 }),
    workerWith('{ housekeepingMs: 1 }', 'housekeepingMs must be a whole number from 10', {
      housekeepingMs: 1,
    }),
    workerWith("{ listen: 'y' }", 'listen must be true or false, but is "y"', { listen: 'y' }),
    workerWith('{ handleSignals: 1 }', 'handleSignals must be true or false, but is 1', { handleSignals: 1 }),
    invalid("worker.stop({ drainMs: 'soon' })", 'drainMs must be a whole number', ({ outbox }) =>
      outbox.worker(list).stop(wrong({ drainMs: 'soon' })),
    ),
    invalid('worker.stop(null)', 'the options must be an object, but is null', ({ outbox }) =>
      outbox.worker(list).stop(wrong(null)),
    ),
    refused('worker.start() after stop()', 'INVALID_STATE', 'This worker was stopped', async ({ outbox }) => {
      const worker = outbox.worker(list)
      await worker.stop()
      return worker.start()
    }),
  ],
}
