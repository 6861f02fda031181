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
import { maskPaths } from './mask-paths.ts'
import { createMasking, MASK } from './masking.ts'

/**
 * A copy of the payload with everything at the given paths replaced. Lists are gone through (`items.price` hides the
 * price of every item, `items.0.price` that of the first), `*` is any key, and a path that leads nowhere hides nothing.
 * What lies beside the paths is shared with the original, which is never changed.
 */
export function maskPayload(payload: unknown, paths: readonly string[], mask: unknown = MASK): unknown {
  const isList = Array.isArray(paths) && paths.every((path) => typeof path === 'string')
  refuseProblems('maskPayload', [isList ? null : `paths must be a list of texts, but is ${shown(paths)}`])
  return maskPaths(payload, paths, mask)
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
  const payload = createMasking(catalogue).payload(event, sink)
  return payload === event.payload ? event : { ...event, payload }
}
