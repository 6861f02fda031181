import type { Tracing } from '../observe/tracing.ts'
import type { Middleware } from './handler.ts'

/** Runs every handler as part of the trace that its event carries. */
export function traceHandlers(tracing: Tracing): Middleware {
  return (next) => (event, ctx) => {
    const { subscription, attempt, maxAttempts } = ctx
    return tracing.handling({ subscription, event, attempt, maxAttempts }, () => next(event, ctx))
  }
}
