import type { EventHeaders } from '../event/event.ts'
import { methodsProblem } from '../runtime/option-checks.ts'
import type { AttemptInfo } from './worker-events.ts'

/** What one call publishes. */
export interface PublishingInfo {
  /** In the order given. The stream is null for a name that is not in the catalogue. */
  readonly events: readonly { readonly name: string; readonly stream: string | null }[]
}

/**
 * Carries traces from whoever publishes to the handlers. `openTelemetry()` of `commitpost/otel` is one; a tracer of your
 * own can be another. Whatever it throws is thrown at whoever publishes, or fails the attempt.
 */
export interface Tracing {
  /** The trace that is current, as `traceparent` and `tracestate`; empty where there is none. */
  headers(): EventHeaders
  /** Runs a publish as part of the current trace; it resolves to the ids of the events. */
  publishing<Ids extends string | readonly string[]>(
    info: PublishingInfo,
    work: () => Promise<Ids>,
  ): Promise<Ids>
  /**
   * Runs a handler as part of the trace that its event carries. `describe` puts what it throws into words as logs may have
   * them: without what the catalogue calls sensitive.
   */
  handling(attempt: AttemptInfo, work: () => unknown, describe: (thrown: unknown) => string): unknown
}

/** What is wrong with an optional `Tracing`, as a sentence; null if nothing is. */
export function tracingProblem(value: unknown): string | null {
  return methodsProblem('tracing', value, ['headers', 'publishing', 'handling'])
}
