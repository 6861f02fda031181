import {
  methodsProblem,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  shown,
} from '../runtime/option-checks.ts'
import type { Catalogue } from './catalogue.ts'
import { SINKS, type Sink } from './definition.ts'
import type { OutboxEvent } from './event.ts'
import { sensitivePaths } from './event-spec.ts'

const MASK = '***'
const INDEX = /^\d+$/

/**
 * A copy of the payload with everything at the given paths replaced. Lists are gone through (`items.price` hides the
 * price of every item, `items.0.price` that of the first), `*` is any key, and a path that leads nowhere hides nothing.
 * What lies beside the paths is shared with the original, which is never changed.
 */
export function maskPayload(payload: unknown, paths: readonly string[], mask: unknown = MASK): unknown {
  const isList = Array.isArray(paths) && paths.every((path) => typeof path === 'string')
  refuseProblems('maskPayload', [isList ? null : `paths must be a list of texts, but is ${shown(paths)}`])
  return paths.reduce((masked, path) => maskAt(masked, path.split('.'), mask), payload)
}

/**
 * A stored or read event without what its definition hides from this sink. An event the catalogue does not know is
 * masked whole: nobody has said what in it may be shown.
 */
export function maskEvent(catalogue: Catalogue, event: OutboxEvent, sink: Sink): OutboxEvent {
  refuseProblems('maskEvent', [
    methodsProblem('the catalogue', catalogue ?? null, ['find', 'findStored']),
    recordProblem('the event', event),
    // A sink nobody knows is hidden from by nobody: everything would be shown.
    oneOfProblem('the sink', sink ?? null, SINKS),
  ])
  const spec = catalogue.findStored(event.type) ?? catalogue.find(event.type)
  if (spec === undefined) return { ...event, payload: MASK }
  const paths = sensitivePaths(spec, sink)
  return paths.length === 0 ? event : { ...event, payload: maskPayload(event.payload, paths) }
}

function maskAt(value: unknown, path: readonly string[], mask: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return mask
  if (Array.isArray(value)) return maskInArray(value, key, path, mask)
  if (typeof value !== 'object' || value === null) return value
  if (key === '*') return mapMembers(value, () => true, rest, mask)
  return Object.hasOwn(value, key) ? mapMembers(value, (name) => name === key, rest, mask) : value
}

function maskInArray(
  items: readonly unknown[],
  key: string,
  path: readonly string[],
  mask: unknown,
): unknown {
  if (key === '*') return items.map((item) => maskAt(item, path.slice(1), mask))
  if (!INDEX.test(key)) return items.map((item) => maskAt(item, path, mask))
  return items.map((item, index) => (index === Number(key) ? maskAt(item, path.slice(1), mask) : item))
}

// Through entries, not by assignment: a key "__proto__" stays a key.
function mapMembers(
  value: object,
  isMeant: (name: string) => boolean,
  rest: readonly string[],
  mask: unknown,
): unknown {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isMeant(name) ? maskAt(member, rest, mask) : member,
    ]),
  )
}
