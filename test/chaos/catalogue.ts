import { createHash } from 'node:crypto'
import { defaultOrderingKey } from '../../src/event/event.ts'
import { defineEvents, type JsonValue, unchecked } from '../../src/index.ts'
import type { Identity } from './checker/entry.ts'

/** What the events of a chaos run carry. */
export interface Load {
  readonly n: number
  readonly text: string
  readonly parts: readonly { readonly name: string; readonly amount: number }[]
}

const numbered = {
  stream: 'chaos.walk',
  aggregate: 'walk',
  sequence: true,
  schema: unchecked<Load>(),
} as const
const plain = { stream: 'chaos.wave', aggregate: 'walk', schema: unchecked<Load>() } as const

/** What code knew before the deploy. */
export const oldCatalogue = defineEvents({ Stepped: numbered, Rested: numbered, Waved: plain })

/** What code knows now: one event more. `Waved` is not numbered: its keys have one publisher each. */
export const catalogue = defineEvents({ Stepped: numbered, Rested: numbered, Waved: plain, Turned: numbered })

/** The name of an event of a chaos run. */
export type LoadName = 'Stepped' | 'Rested' | 'Waved' | 'Turned'

/** The header whose value has to arrive as it was sent. */
export const ORIGIN = 'origin'

/** What makes an event what it is, whoever looks at it. */
export function identityOf(
  eventId: string,
  type: string,
  key: string,
  payload: unknown,
  origin: string | undefined,
): Identity {
  const text = canonical([payload as JsonValue, origin ?? null])
  return { eventId, type, key, digest: createHash('sha1').update(text).digest('base64url') }
}

/** The ordering key of a walk. */
export function keyOf(aggregateId: string): string {
  return defaultOrderingKey('walk', aggregateId)
}

/** The same text for the same JSON, whatever order its keys are in. */
function canonical(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(',')}}`
}
