import {
  assertCompatible,
  chained,
  checkCatalogue,
  compareCatalogues,
  createClassify,
  createDispatcher,
  createOutboxRepository,
  defineEvents,
  exponential,
  fixed,
  fromEnvelope,
  jsonLineLogger,
  logObserver,
  maskEvent,
  maskPayload,
  RetryLaterError,
  runUntilSignal,
  schedule,
  stopOnSignals,
  systemClock,
  toEnvelope,
  upcastFrom,
} from '../../../src/index.ts'
import { type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import { events, type Scene } from '../scene.ts'

const backoff = (does: string, says: string, run: () => unknown): Refusal => invalid(does, says, run)

export const backoffs: Group = {
  title: 'Back-off',
  rows: [
    backoff('exponential()', 'the argument must be an object, but is undefined', () =>
      exponential(wrong(undefined)),
    ),
    backoff(
      "exponential({ base: '1y', cap: '1m' })",
      'base must be milliseconds (1500) or text with a unit',
      () => exponential({ base: wrong('1y'), cap: '1m' }),
    ),
    backoff("exponential({ base: 0, cap: '1m' })", 'base must be more than 0', () =>
      exponential({ base: 0, cap: '1m' }),
    ),
    backoff("exponential({ base: '1h', cap: '1m' })", 'must not be shorter than base', () =>
      exponential({ base: '1h', cap: '1m' }),
    ),
    backoff('exponential({ …, factor: 0.5 })', 'factor must be 1 or more, but is 0.5', () =>
      exponential({ base: 1, cap: 2, factor: 0.5 }),
    ),
    backoff('exponential({ …, jitter: 2 })', "jitter must be from 0 to 1, or 'full', but is 2", () =>
      exponential({ base: 1, cap: 2, jitter: 2 }),
    ),
    backoff('exponential({ …, max: 5 })', 'there is no option "max"', () =>
      exponential(wrong({ base: 1, cap: 2, max: 5 })),
    ),
    backoff('schedule()', 'there must be at least one delay', () => schedule(...([] as unknown as [number]))),
    backoff('schedule(null)', 'delay 1 must be milliseconds', () => schedule(wrong(null))),
    backoff("schedule({ jitter: 0 }, '1m')", 'options must come last', () =>
      schedule(wrong({ jitter: 0 }), '1m'),
    ),
    backoff('schedule(-1)', 'delay 1 must be milliseconds', () => schedule(-1)),
    backoff('fixed()', 'delay 1 must be milliseconds', () => fixed(wrong(undefined))),
    backoff("fixed('soon')", 'but is "soon"', () => fixed(wrong('soon'))),
    invalid(
      "new RetryLaterError('x')",
      'afterMs must be a number of milliseconds, 0 or more, but is undefined',
      () => new RetryLaterError('x', wrong(undefined)),
    ),
    invalid(
      "new RetryLaterError('x', { afterMs: -1 })",
      'but is -1',
      () => new RetryLaterError('x', { afterMs: -1 }),
    ),
  ],
}

const catalogue = (does: string, says: string, definitions: unknown, options?: unknown): Refusal =>
  invalid(`defineEvents(${does})`, says, () => defineEvents(wrong(definitions), wrong(options)))

/** A good definition with one property that is not. */
const defined = (does: string, says: string, property: object): Refusal =>
  catalogue(`{ OrderPlaced: { …, ${does} } }`, says, {
    OrderPlaced: { stream: 'shop', aggregate: 'order', ...property },
  })

export const catalogues: Group = {
  title: 'Catalogues',
  rows: [
    catalogue('', 'the definitions must be an object, but is undefined', undefined),
    catalogue('null', 'the definitions must be an object, but is null', null),
    catalogue('[]', 'the definitions must be an object, but is a list of 0', []),
    catalogue('{}, null', 'the options must be an object, but is null', {}, null),
    catalogue("{}, { name: 'any' }", 'there is no option "name"; did you mean "names"?', {}, { name: 'any' }),
    catalogue(
      '{}, { names: 5 }',
      "names must be 'past-tense', 'upper-snake', 'any', a RegExp or a function",
      {},
      { names: 5 },
    ),
    catalogue(
      "{}, { refuse: '*' }",
      'refuse must list objects of a stream or type pattern and a reason',
      {},
      { refuse: '*' },
    ),
    catalogue('{ OrderPlaced: null }', 'OrderPlaced: must be an object', { OrderPlaced: null }),
    catalogue("{ 'order placed': … }", 'name must be 1 to 255 letters, digits', {
      'order placed': { stream: 's', aggregate: 'a' },
    }),
    catalogue('{ PlaceOrder: … }', 'must say what happened, with a verb in the past tense', {
      PlaceOrder: { stream: 's', aggregate: 'a' },
    }),
    defined('sensitve: …', 'has an unknown property "sensitve"; did you mean "sensitive"?', { sensitve: [] }),
    defined("stream: 'a b'", 'stream must be 1 to 249 letters', { stream: 'a b' }),
    defined("stream: '..'", 'stream must be 1 to 249 letters', { stream: '..' }),
    defined('stream: 5', 'stream must be 1 to 249 letters', { stream: 5 }),
    defined("aggregate: ''", 'aggregate must be 1 to 249 letters', { aggregate: '' }),
    defined('version: 0', 'version must be a whole number from 1 on', { version: 0 }),
    defined('version: 2 ** 40', 'version must be a whole number from 1 on', { version: 2 ** 40 }),
    defined('version: 3, upcast: { 1 }', 'upcast lacks the step from version 2', {
      version: 3,
      upcast: { 1: (old: unknown) => old },
    }),
    defined('schema: {}', 'schema must be a Standard Schema', { schema: {} }),
    defined("kind: 'fact'", "kind must be 'event' or 'command'", { kind: 'fact' }),
    defined("sequence: 'yes'", 'sequence must be true or false', { sequence: 'yes' }),
    defined('sensitive: [null]', 'sensitive path', { sensitive: [null] }),
    defined("sensitive: [{ path: 'a', from: ['logs'] }]", 'must be hidden from some of log, alert', {
      sensitive: [{ path: 'a', from: ['logs'] }],
    }),
    catalogue('two events stored alike', 'is called or stored as "A", and so is', {
      OrderPlaced: { stream: 's', aggregate: 'a', storedAs: 'A' },
      OrderPaid: { stream: 's', aggregate: 'a', storedAs: 'A' },
    }),
    invalid('upcastFrom(5)', 'the upcaster must be a function, but is 5', () => upcastFrom(wrong(5))),
    invalid('checkCatalogue(undefined, null)', 'it must come from defineEvents, but is undefined', () =>
      checkCatalogue(wrong(undefined), null),
    ),
    invalid("assertCompatible(events, '{')", 'is no JSON', () => assertCompatible(events, '{')),
    invalid("assertCompatible(events, '[]')", 'is not a snapshot that this version can read', () =>
      assertCompatible(events, '[]'),
    ),
    invalid('compareCatalogues({}, {})', 'before must come from describeCatalogue', () =>
      compareCatalogues(wrong({}), wrong({})),
    ),
  ],
}

const event = {
  eventId: '0198c0de-0000-7000-8000-00000000000a',
  position: '1',
  stream: 's',
  type: 'OrderChecked',
  schemaVersion: 1,
  aggregateType: 'order',
  aggregateId: '1',
  orderingKey: 'order:1',
  sequence: null,
  payload: { total: 1, card: '4111' },
  headers: {},
  occurredAt: new Date(0),
  createdAt: new Date(0),
}

const repository = (does: string, says: string, run: (scene: Scene) => unknown): Refusal =>
  invalid(does, says, run)

const repositoryOf = ({ outbox, store }: Scene) =>
  createOutboxRepository({ outbox, store, subscription: 'poller' })

export const functions: Group = {
  title: 'Other functions',
  rows: [
    invalid('toEnvelope(undefined)', 'the event must be one as handlers get it, but is undefined', () =>
      toEnvelope(wrong(undefined)),
    ),
    invalid('toEnvelope(event, null)', 'the fields must be an object, but is null', () =>
      toEnvelope(event, wrong(null)),
    ),
    invalid("toEnvelope(event, { typ: 'x' })", 'did you mean "type"?', () =>
      toEnvelope(event, wrong({ typ: 'x' })),
    ),
    invalid("toEnvelope(event, { type: 'eventId' })", 'two fields would be called "eventId"', () =>
      toEnvelope(event, { type: 'eventId' }),
    ),
    refused('fromEnvelope(undefined)', 'INVALID_ENVELOPE', 'it must be a JSON object', () =>
      fromEnvelope(undefined),
    ),
    refused("fromEnvelope('text')", 'INVALID_ENVELOPE', 'it must be a JSON object', () =>
      fromEnvelope('text'),
    ),
    refused('fromEnvelope({})', 'INVALID_ENVELOPE', 'eventId must be a text', () => fromEnvelope({})),
    refused('fromEnvelope({ …, market: {} })', 'INVALID_ENVELOPE', 'attribute market must be a text', () =>
      fromEnvelope({ ...toEnvelope(event), market: {} }),
    ),
    invalid("maskEvent(events, event, 'logs')", "the sink must be one of 'log'", () =>
      maskEvent(events, event, wrong('logs')),
    ),
    invalid('maskEvent(undefined, …)', 'the catalogue must have the methods find, findStored', () =>
      maskEvent(wrong(undefined), event, 'log'),
    ),
    invalid("maskPayload({}, 'card')", 'paths must be a list of texts, but is "card"', () =>
      maskPayload({}, wrong('card')),
    ),
    invalid('chained(undefined)', 'the event must be one as handlers get it', () =>
      chained(wrong(undefined)),
    ),
    invalid('createDispatcher()', 'the options must be an object, but is undefined', () =>
      createDispatcher(wrong(undefined)),
    ),
    invalid('createDispatcher({})', 'handlers must be an object of handlers by event name', () =>
      createDispatcher(wrong({})),
    ),
    invalid('createClassify()', 'clock must have the methods now', () => createClassify(wrong(undefined))),
    invalid('createClassify(systemClock, 5)', 'the classifier must be a function, but is 5', () =>
      createClassify(systemClock, wrong(5)),
    ),
    invalid('jsonLineLogger()', 'write must be a function', () => jsonLineLogger(wrong(undefined))),
    invalid('logObserver({})', 'logger must have the methods', () => logObserver(wrong({}))),
    invalid('stopOnSignals()', 'worker must have the methods stop', () => stopOnSignals(wrong(undefined))),
    invalid('runUntilSignal({})', 'worker must have the methods start, stop', () =>
      runUntilSignal(wrong({})),
    ),
    repository('createOutboxRepository()', 'the argument must be an object, but is undefined', () =>
      createOutboxRepository(wrong(undefined)),
    ),
    repository('createOutboxRepository({})', 'store must have the methods openWorker', () =>
      createOutboxRepository(wrong({})),
    ),
    repository(
      "createOutboxRepository({ …, subscription: 'a b' })",
      'the name must be 1 to 100 letters',
      ({ outbox, store }) => createOutboxRepository({ outbox, store, subscription: 'a b' }),
    ),
    repository('repository.findPending()', 'limit must be a whole number from 1', (scene) =>
      repositoryOf(scene).findPending(wrong(undefined)),
    ),
    repository('repository.findPending(0)', 'limit must be a whole number from 1', (scene) =>
      repositoryOf(scene).findPending(0),
    ),
    repository("repository.markProcessed('id')", 'ids must be a list of texts, but is "id"', (scene) =>
      repositoryOf(scene).markProcessed(wrong('id')),
    ),
    repository("repository.markFailed('id')", 'reason must be text that is not empty', (scene) =>
      repositoryOf(scene).markFailed('id', wrong(undefined)),
    ),
    refused(
      "repository.markProcessed(['404'])",
      'NOT_FOUND',
      'There is no delivery of event "404" to "poller" in hand',
      (scene) => repositoryOf(scene).markProcessed(['404']),
    ),
    refused(
      "repository.markFailed('404', 'broken')",
      'NOT_FOUND',
      'There is no delivery of event "404" to "poller" in hand',
      (scene) => repositoryOf(scene).markFailed('404', 'broken'),
    ),
    repository('repository.insert(tx, undefined)', 'the entry must be an object', (scene) =>
      scene.inTransaction((tx) => repositoryOf(scene).insert(tx, wrong(undefined))),
    ),
    repository('repository.insert(tx, { …, aggregateID })', 'did you mean "aggregateId"?', (scene) =>
      scene.inTransaction((tx) =>
        repositoryOf(scene).insert(tx, wrong({ eventType: 'OrderPlaced', aggregateID: 1, payload: {} })),
      ),
    ),
  ],
}
