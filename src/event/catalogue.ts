import type { OutboxEvent } from './event.ts'
import type { EventSpec } from './event-spec.ts'
import type { PrepareInput, PrepareLimits, PrepareResult } from './prepare-event.ts'

/** The payload types of a catalogue: what is given to publish, and what handlers get. */
export interface EventTypes {
  readonly [name: string]: { readonly input: unknown; readonly output: unknown }
}

/**
 * The typed list of all events a system knows. Made by `defineEvents`; used to publish, to read and to compare.
 * Code calls an event by its name; the table knows it by its stored type, which is the name unless `storedAs` differs.
 */
export interface Catalogue<out Types extends EventTypes = EventTypes> {
  /** Exists for the compiler only. */
  readonly '~types'?: Types
  /** All events, in the order they were defined. */
  readonly events: readonly EventSpec[]
  /** The event with this name in code. */
  find(name: string): EventSpec | undefined
  /** The event with this type in the table. */
  findStored(storedType: string): EventSpec | undefined
  /**
   * Checks, serialises and completes what was given to publish, as far as the catalogue can. Problems are a value, so
   * that a batch can report those of all its events together. At once, unless the schema itself is asynchronous.
   */
  prepare(name: string, input: PrepareInput, limits: PrepareLimits): PrepareResult | Promise<PrepareResult>
  /**
   * Reads a stored event: upcasts it to the current version, validates it, and names it by its name in code. Events
   * newer than this code are validated as they are. Undefined for a type that is not in the catalogue.
   *
   * Returns at once unless the schema itself is asynchronous, and the very same object when nothing had to change.
   * @throws UnreadablePayloadError (thrown or rejected) when the payload cannot be read.
   */
  // Typed by the catalogue it is called on, not by `Types`: a catalogue of some events must remain a `Catalogue`.
  read<C extends Catalogue>(
    this: C,
    event: OutboxEvent,
  ): CatalogueEvent<C> | undefined | Promise<CatalogueEvent<C>>
}

/** The payload types of a catalogue. */
export type TypesOf<C extends Catalogue> = NonNullable<C['~types']>

/** The names of a catalogue's events. */
export type EventName<C extends Catalogue> = keyof TypesOf<C> & string

/** What is given to publish: the input of the event's schema. */
export type PayloadInput<C extends Catalogue, Name extends EventName<C>> = TypesOf<C>[Name]['input']

/** What a handler gets: the output of the event's schema. */
export type PayloadOutput<C extends Catalogue, Name extends EventName<C>> = TypesOf<C>[Name]['output']

/** One event of a catalogue as a handler sees it; without a name, any of them. */
export type CatalogueEvent<C extends Catalogue, Name extends EventName<C> = EventName<C>> = {
  [Each in Name]: OutboxEvent<Each, PayloadOutput<C, Each>>
}[Name]

/** The events of a catalogue by name: what a map of handlers is typed by. */
export type EventsByName<C extends Catalogue> = { readonly [Name in EventName<C>]: CatalogueEvent<C, Name> }
