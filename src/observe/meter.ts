import type { NewEvent } from '../event/event.ts'
import type { Observer } from './worker-events.ts'

/** Counts what is published and what workers do. `prometheusMetrics()` is one. Neither function may throw. */
export interface Meter {
  /** Told of everything that workers do. */
  readonly observer: Observer
  /** Told of events that were written, before their transaction commits. */
  readonly published: (events: readonly NewEvent[]) => void
}
