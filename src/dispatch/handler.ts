import type { Lease } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { Logger } from '../observe/logger.ts'

/** What came of `ctx.once`: the work's result, or that it had been done by an earlier attempt. */
export type Once<Result> = { readonly first: true; readonly result: Result } | { readonly first: false }

/** `ctx.publish` of a dispatcher that knows no catalogue. */
export type UntypedPublish = (tx: unknown, name: string, input: unknown) => Promise<unknown>

/**
 * What a handler gets beside its event. `Publish` is the catalogue's own publish function, so that names and payloads
 * are checked by the compiler.
 */
export interface HandlerContext<Publish = UntypedPublish> {
  readonly subscription: string
  /** 1 for the first. */
  readonly attempt: number
  readonly maxAttempts: number
  /** The claim on this delivery; its token only grows, so it can fence other systems. Null outside the queue. */
  readonly lease: Lease | null
  /**
   * Aborts when the handler's time is over, when the worker gives up waiting at shutdown, and when the lease is lost.
   * Pass it to whatever the handler waits for. Made only when it is read.
   */
  readonly signal: AbortSignal
  /** Logs with traceId, eventId, stream, eventType, aggregate, subscription and attempt on every line. */
  readonly log: Logger
  /**
   * Runs the work in the given transaction unless an earlier attempt's transaction committed it already: the effect
   * happens once, however often the event arrives.
   */
  once<Tx, Result>(tx: Tx, work: (tx: Tx) => Promise<Result>): Promise<Once<Result>>
  /** Marks this delivery done inside the handler's own transaction: effect and mark commit together or not at all. */
  complete(tx: unknown): Promise<void>
  /** Publishes a further event in the handler's own transaction, caused by this one. */
  readonly publish: Publish
}

/** User code for one event type. What it returns is awaited and otherwise ignored; what it throws is classified. */
export type Handler<Event = OutboxEvent, Context = HandlerContext> = (event: Event, ctx: Context) => unknown

/** Handlers by event type, `'*'` for every type that has none of its own. */
export type HandlerMap = Readonly<Record<string, Handler>>

/** The key of the handler for all types that have none of their own. */
export const CATCH_ALL = '*'

/**
 * Wraps every handler of a subscription: given the next one, returns what runs in its place. Called once per handler
 * when the dispatcher is made, not once per event. The first in the list is the outermost.
 */
export type Middleware = (next: Handler) => Handler

/**
 * Typed handlers of a subscription: `Events` maps each event name to the event its handler gets.
 * Unlisted types are for `'*'`, or for no handler at all.
 */
export type HandlersOf<Events extends object, Context = HandlerContext> = {
  readonly [Name in keyof Events]?: Handler<Events[Name], Context>
} & { readonly [CATCH_ALL]?: Handler<OutboxEvent, Context> }

/** What `ctx` delegates to; wired by the worker, because inbox, settling and publishing are other stages. */
export interface ContextServices<Delivery> {
  once<Tx, Result>(
    event: OutboxEvent,
    subscription: string,
    tx: Tx,
    work: (tx: Tx) => Promise<Result>,
  ): Promise<Once<Result>>
  complete(delivery: Delivery, tx: unknown): Promise<void>
  publish(event: OutboxEvent, tx: unknown, name: string, input: unknown): Promise<unknown>
}
