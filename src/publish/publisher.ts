import type { Catalogue } from '../event/catalogue.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../event/encode-payload.ts'
import { type EventProblem, InvalidEventError } from '../event/errors.ts'
import type { EventHeaders, NewEvent } from '../event/event.ts'
import { InvalidOptionsError } from '../runtime/errors.ts'
import { type Ids, normaliseUuid, systemIds } from '../runtime/ids.ts'
import type { OnDuplicate, PublishStore } from '../store/publish-store.ts'
import { type BuildParts, buildEvent, type GivenEvent } from './build-event.ts'
import type { EventBus } from './event-bus.ts'
import { assertTransactionHandle } from './transaction-handle.ts'

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
    onDuplicate: OnDuplicate,
  ): Promise<readonly string[]> => {
    await options.store.assertInTransaction(tx)
    await options.store.insertEvents(tx, events, { onDuplicate })
    options.onPublished?.(events, tx)
    return events.map((event) => event.eventId)
  }
  return {
    publish: async (tx, name, { onDuplicate = 'error', ...details }) => {
      assertTransactionHandle(tx, 'publish')
      const event = await buildOne(parts, { ...details, type: name })
      await write(tx, [event], checkedOnDuplicate(onDuplicate))
      return event.eventId
    },
    publishAll: async (tx, inputs, { onDuplicate = 'error' } = {}) => {
      assertTransactionHandle(tx, 'publishAll')
      if (inputs.length === 0) return []
      const events = await buildAll(parts, inputs, checkedOnDuplicate(onDuplicate))
      return write(tx, events, onDuplicate)
    },
  }
}

function resolvePublisherOptions<C extends Catalogue, Tx>(options: PublisherOptions<C, Tx>): BuildParts {
  const ids = options.ids ?? systemIds
  const maxPayloadBytes = options.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES
  const ambientHeaders = options.ambientHeaders ?? (() => ({}))
  const problems: string[] = []
  if (!Number.isSafeInteger(maxPayloadBytes) || maxPayloadBytes < 1) {
    problems.push('maxPayloadBytes must be a whole number of bytes from 1 on')
  }
  if (typeof ambientHeaders !== 'function') problems.push('ambientHeaders must be a function')
  if (problems.length > 0) throw new InvalidOptionsError('the publisher', problems)
  return { catalogue: options.catalogue, newEventId: () => ids.eventId(), ambientHeaders, maxPayloadBytes }
}

function checkedOnDuplicate(onDuplicate: OnDuplicate): OnDuplicate {
  if (onDuplicate === 'error' || onDuplicate === 'ignore') return onDuplicate
  throw new InvalidOptionsError('publish', [`onDuplicate must be 'error' or 'ignore'`])
}

async function buildOne(parts: BuildParts, given: GivenEvent): Promise<NewEvent> {
  const built = await buildEvent(parts, given)
  if (built.ok) return built.event
  throw new InvalidEventError(`event "${given.type}"`, built.problems)
}

async function buildAll(
  parts: BuildParts,
  inputs: readonly GivenEvent[],
  onDuplicate: OnDuplicate,
): Promise<readonly NewEvent[]> {
  const events: NewEvent[] = []
  const problems: EventProblem[] = []
  // One after the other: ids must ascend in the order given.
  for (const [index, given] of inputs.entries()) {
    const built = await buildEvent(parts, given)
    if (built.ok) events.push(built.event)
    else problems.push(...built.problems.map((problem) => ({ ...problem, index })))
  }
  if (onDuplicate === 'error') problems.push(...repeatedIds(inputs))
  if (problems.length === 0) return events
  throw new InvalidEventError(`events (${inputs.length} given)`, problems)
}

function repeatedIds(inputs: readonly GivenEvent[]): readonly EventProblem[] {
  const ids = inputs.map(({ eventId }) => normaliseUuid(eventId))
  const firstAt = new Map(ids.map((id, index) => [id, index] as const).toReversed())
  return ids.flatMap((id, index): EventProblem[] => {
    if (id === null || firstAt.get(id) === index) return []
    const message = `is that of [${firstAt.get(id)}] too: each event needs an id of its own`
    return [{ code: 'INVALID_EVENT', path: 'eventId', message, index }]
  })
}
