import { describeError } from '../runtime/text.ts'
import type { EventSpec } from './event-spec.ts'

/** What a schema, an upcaster or an ordering key threw, unless it may quote a field that has to stay hidden. */
export function thrownText(spec: EventSpec, error: unknown): string {
  return spec.sensitive.length > 0 ? 'the reason is withheld (it has sensitive fields)' : describeError(error)
}
