import type { Catalogue } from '../event/catalogue.ts'
import { encodePayload } from '../event/encode-payload.ts'
import { type EventProblem, InvalidEventError } from '../event/errors.ts'
import { defaultOrderingKey } from '../event/event.ts'
import { shown } from '../runtime/option-checks.ts'
import type { AmendRequest, DeadLetter } from '../store/dead-letter-store.ts'

/** The payload that is to be stored in the place of a dead one, and its version: null for that of the original. */
export type AmendedPayload = Pick<AmendRequest, 'payloadJson' | 'schemaVersion'>

/**
 * Checks the payload that takes the place of a dead letter's: by the catalogue, as if it were published, or where there
 * is none, only that it can be stored.
 * @throws InvalidEventError with everything that is wrong with it.
 */
export async function amendedPayload(
  letter: DeadLetter,
  payload: unknown,
  catalogue: Catalogue | null,
  maxPayloadBytes: number,
): Promise<AmendedPayload> {
  if (catalogue === null) {
    return { payloadJson: encodePayload(payload, { maxBytes: maxPayloadBytes }), schemaVersion: null }
  }
  const { eventType, aggregateId, aggregateType } = letter
  const spec = catalogue.findStored(eventType)
  if (spec === undefined) throw refusal(letter, [unknownType(eventType)])
  // The key stays that of the original, whatever the payload says: it takes its place.
  const orderingKey = letter.orderingKey || defaultOrderingKey(aggregateType, aggregateId)
  const prepared = await catalogue.prepare(
    spec.name,
    { payload, aggregateId, orderingKey },
    { maxPayloadBytes },
  )
  if (!prepared.ok) throw refusal(letter, prepared.problems)
  const { payloadJson, schemaVersion } = prepared.event
  return { payloadJson, schemaVersion }
}

function unknownType(eventType: string): EventProblem {
  return {
    code: 'UNKNOWN_EVENT_TYPE',
    path: 'type',
    message: `${shown(eventType)} is not in the catalogue, so nobody can say what its payload must be`,
  }
}

function refusal({ eventType }: DeadLetter, problems: readonly EventProblem[]): InvalidEventError {
  return new InvalidEventError(`amendment of event ${shown(eventType)}`, problems)
}
