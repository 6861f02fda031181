import { functionProblem, refuseProblems } from '../runtime/option-checks.ts'
import type { JsonObject } from './event.ts'
import type { EventKind, NameRule } from './names.ts'
import type { SchemaOutput, StandardSchemaV1 } from './standard-schema.ts'

/** All sinks. */
export const SINKS = ['log', 'alert', 'dashboard', 'export', 'audit'] as const

/** Where masked data goes. A field can be hidden from some of them and shown to others. */
export type Sink = (typeof SINKS)[number]

/** A path that is hidden everywhere, or one that is hidden from the named sinks only. */
export type SensitivePath = string | { readonly path: string; readonly from: readonly Sink[] }

/**
 * Turns a payload of one version into one of the next. It must return a new value, at once (no promise), and never
 * change the old one. `old` is what was stored; annotate it with a `type` of your own, or use `upcastFrom`.
 */
// Written as a method, so that an upcaster may declare the precise old type where JSON is promised.
export type Upcaster = { upcast(old: JsonObject): unknown }['upcast']

/** What an ordering key may be made of, besides the payload. */
export interface OrderingKeyContext {
  readonly aggregateId: string
}

/** One event of a catalogue, as the user writes it. */
export interface EventDefinition<Schema = unknown> {
  /** The logical topic: letters, digits, dots, dashes and underscores, usable as a Kafka topic unchanged. */
  readonly stream: string
  /** The aggregate type: `order`. */
  readonly aggregate: string
  /**
   * `command` for an order to do something (CreateOrderAttempt): its name need not be in the past tense.
   * @default 'event'
   */
  readonly kind?: EventKind
  /**
   * The version new payloads are written with.
   * @default 1
   */
  readonly version?: number
  /**
   * The oldest version that may still be stored. Older events are refused instead of misread.
   * @default 1
   */
  readonly oldestVersion?: number
  /**
   * What a payload must be: any Standard Schema (zod, valibot, arktype), or `unchecked<T>()` for a type alone.
   * Checked when the event is published and again when it is read. Stored is what the schema makes of the payload
   * (unknown fields dropped, defaults filled in) if it accepts that unchanged; else, as with a transform to another
   * type, the payload as given.
   * @default none: any JSON, typed `unknown`
   */
  readonly schema?: Schema & StandardSchemaV1
  /** The payload's JSON Schema, for libraries that cannot tell it themselves (valibot: `toJsonSchema(schema)`). */
  readonly jsonSchema?: object
  /**
   * From each older version to the next: `{ 1: (old) => …, 2: (old) => … }` for version 3. Complete, or absent: without
   * any, older payloads go to the schema as they are, which is right when fields were only added.
   */
  readonly upcast?: Readonly<Record<number, Upcaster>>
  /** Paths of fields to hide in logs, alerts, exports: `card.number`; lists are gone through, `*` is any key. */
  readonly sensitive?: readonly SensitivePath[]
  /**
   * What order, sequence and a broker's key follow, where that is not the aggregate: `(p) => p.accountId`.
   * @default the aggregate
   */
  readonly orderingKey?: (payload: SchemaOutput<Schema>, context: OrderingKeyContext) => string
  /**
   * Numbers the events 1, 2, 3 … within their ordering key. Publishers of one key wait for each other's commit.
   * @default false
   */
  readonly sequence?: boolean
  /**
   * The type as it stands in the table, where that differs from the name in code: `LEDGER_POSTED`.
   * @default the name
   */
  readonly storedAs?: string
}

/** Events that shall never come into the outbox. Patterns: `*` stands for any run of characters. */
export type Refusal =
  | { readonly stream: string; readonly reason: string }
  | { readonly type: string; readonly reason: string }

/** Rules of a whole catalogue. */
export interface CatalogueOptions {
  /**
   * The rule for event names.
   * @default 'past-tense'
   */
  readonly names?: NameRule
  /**
   * What the catalogue refuses, and why: `{ stream: '*.ticker', reason: 'market data is not for the outbox' }`.
   * @default none
   */
  readonly refuse?: readonly Refusal[]
}

/** Declares the type an upcaster starts from, where it is an `interface` or no object. It is believed, not checked. */
export function upcastFrom<Old>(convert: (old: Old) => unknown): Upcaster {
  refuseProblems('upcastFrom', [functionProblem('the upcaster', convert ?? null)])
  return (old) => convert(old as Old)
}
