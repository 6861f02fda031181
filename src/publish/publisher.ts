import type { Catalogue } from '../event/catalogue.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../event/encode-payload.ts'
import { type EventProblem, InvalidEventError } from '../event/errors.ts'
import type { EventHeaders, NewEvent } from '../event/event.ts'
import { after } from '../runtime/after.ts'
import { type Ids, normaliseUuid, systemIds } from '../runtime/ids.ts'
import {
  functionProblem,
  isRecord,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { InsertOptions, OnDuplicate, PublishStore } from '../store/publish-store.ts'
import { type BuildParts, buildEvent } from './build-event.ts'
import type { EventBus } from './event-bus.ts'
import { BATCH_PROPERTIES, PUBLISH_PROPERTIES, readInput } from './given-event.ts'
import { assertTransactionHandle } from './transaction-handle.ts'

/** What jsonb can hold, less than half of what PostgreSQL could, so that the statement around it fits too. */
const LARGEST_PAYLOAD_BYTES = 100_000_000

/** What a publisher is made of. */
export interface PublisherOptions<C extends Catalogue, Tx> {
  readonly catalogue: C
  readonly store: PublishStore<Tx>
  /**
   * Where ids of events come from.
   * @default UUID v7, ascending within the process
   */
  readonly ids?: Pick<Ids, 'eventId'>
  /**
   * The largest payload, in bytes of UTF-8 JSON.
   * @default 1_048_576
   */
  readonly maxPayloadBytes?: number
  /**
   * Headers for every event published from here, such as the current trace. Called once per event, and must not throw;
   * headers given with an event win.
   * @default none
   */
  readonly ambientHeaders?: () => EventHeaders
  /**
   * Told of events that were written, before their transaction commits: for counting, and for waking a worker after
   * the commit. It must not throw, as that would fail the caller's transaction.
   */
  readonly onPublished?: (events: readonly NewEvent[], tx: Tx) => void
}

/** Makes the outbox's `EventBus`: validates everything first, then writes all events of a call in one statement. */
export function createPublisher<C extends Catalogue, Tx>(options: PublisherOptions<C, Tx>): EventBus<C, Tx> {
  const parts = resolvePublisherOptions(options)
  const write = async (
    tx: Tx,
    events: readonly NewEvent[],
    insert: InsertOptions,
  ): Promise<readonly string[]> => {
    await options.store.assertInTransaction(tx)
    await options.store.insertEvents(tx, events, insert)
    options.onPublished?.(events, tx)
    return events.map((event) => event.eventId)
  }
  return {
    publish: async (tx, name, input) => {
      assertTransactionHandle(tx, 'publish', () => publishCall(tx, name))
      const building = buildOne(parts, name, input)
      const { event, onDuplicate } = building instanceof Promise ? await building : building
      await write(tx, [event], { onDuplicate, mayBeKeptBack: hasNewId(input) })
      return event.eventId
    },
    publishAll: async (tx, inputs, given = {}) => {
      assertTransactionHandle(tx, 'publishAll', () => 'outbox.publishAll(tx, [ … ])')
      refuseProblems('publishAll', batchProblems(inputs, given))
      if (inputs.length === 0) return []
      const onDuplicate = given.onDuplicate ?? 'error'
      return write(tx, await buildAll(parts, inputs, onDuplicate), {
        onDuplicate,
        mayBeKeptBack: inputs.every(hasNewId),
      })
    },
  }
}

/** An event whose id was given may be there already, and whoever gave it may want to do something about that at once. */
function hasNewId(input: unknown): boolean {
  return property(input, 'eventId') === undefined
}

/** The call as it should be. Where the transaction was left out, the event's name stands in its place. */
function publishCall(tx: unknown, name: unknown): string {
  const type = typeof name === 'string' ? name : tx
  return `outbox.publish(tx, ${typeof type === 'string' ? shown(type) : 'name'}, { aggregateId, payload })`
}

/** What is wrong with the options of a publisher, for a caller that collects the problems of several groups. */
export function publisherProblems(options: {
  readonly maxPayloadBytes?: unknown
  readonly ambientHeaders?: unknown
  readonly ids?: unknown
}): readonly (string | null)[] {
  return [
    wholeNumberProblem('maxPayloadBytes', options.maxPayloadBytes, 1, LARGEST_PAYLOAD_BYTES),
    functionProblem('ambientHeaders', options.ambientHeaders),
    methodsProblem('ids', options.ids, ['eventId']),
  ]
}

function resolvePublisherOptions<C extends Catalogue, Tx>(options: PublisherOptions<C, Tx>): BuildParts {
  refuseProblems('the publisher', publisherProblems(options))
  const ids = options.ids ?? systemIds
  return {
    catalogue: options.catalogue,
    newEventId: () => ids.eventId(),
    ambientHeaders: options.ambientHeaders ?? null,
    maxPayloadBytes: options.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES,
  }
}

const ON_DUPLICATE: readonly OnDuplicate[] = ['error', 'ignore']

function batchProblems(inputs: unknown, options: unknown): readonly (string | null)[] {
  const list = Array.isArray(inputs) ? null : `events must be a list, but is ${shown(inputs)}`
  if (!isRecord(options)) return [list, recordProblem('the options', options)]
  return [
    list,
    ...unknownOptionProblems(options, ['onDuplicate']),
    oneOfProblem('onDuplicate', options['onDuplicate'], ON_DUPLICATE),
  ]
}

interface OneEvent {
  readonly event: NewEvent
  readonly onDuplicate: OnDuplicate
}

function buildOne(parts: BuildParts, name: string, input: unknown): OneEvent | Promise<OneEvent> {
  const { given, problems } = readInput(input, PUBLISH_PROPERTIES)
  const onDuplicate = given?.onDuplicate === undefined ? 'error' : given.onDuplicate
  const all = [...problems]
  const unclear = oneOfProblem('', onDuplicate, ON_DUPLICATE)
  if (unclear !== null) all.push({ code: 'INVALID_EVENT', path: 'onDuplicate', message: unclear.trim() })
  if (given === null) throw new InvalidEventError(`event ${shown(name)}`, all)
  return after(buildEvent(parts, name, given), (built) => {
    if (built.ok && all.length === 0) return { event: built.event, onDuplicate: onDuplicate as OnDuplicate }
    throw new InvalidEventError(`event ${shown(name)}`, built.ok ? all : [...all, ...built.problems])
  })
}

async function buildAll(
  parts: BuildParts,
  inputs: readonly unknown[],
  onDuplicate: OnDuplicate,
): Promise<readonly NewEvent[]> {
  const events: NewEvent[] = []
  const problems: EventProblem[] = []
  // One after the other: ids must ascend in the order given.
  for (const [index, input] of inputs.entries()) {
    const read = readInput(input, BATCH_PROPERTIES)
    const building = read.given === null ? null : buildEvent(parts, read.given.type, read.given)
    const built = building instanceof Promise ? await building : building
    if (built?.ok === true) events.push(built.event)
    for (const problem of read.problems) problems.push({ ...problem, index })
    if (built?.ok === false) problems.push(...built.problems.map((problem) => ({ ...problem, index })))
  }
  if (onDuplicate === 'error') problems.push(...repeatedIds(inputs))
  if (problems.length === 0) return events
  throw new InvalidEventError(`events (${inputs.length} given)`, problems)
}

function repeatedIds(inputs: readonly unknown[]): readonly EventProblem[] {
  if (inputs.every(hasNewId)) return []
  const ids = inputs.map((input) => normaliseUuid(property(input, 'eventId')))
  const firstAt = new Map(ids.map((id, index) => [id, index] as const).toReversed())
  return ids.flatMap((id, index): EventProblem[] => {
    if (id === null || firstAt.get(id) === index) return []
    const message = `is that of [${firstAt.get(id)}] too: each event needs an id of its own`
    return [{ code: 'INVALID_EVENT', path: 'eventId', message, index }]
  })
}
