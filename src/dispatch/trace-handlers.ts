import type { Masking } from '../event/masking.ts'
import type { Tracing } from '../observe/tracing.ts'
import { describeError } from '../runtime/text.ts'
import type { Middleware } from './handler.ts'

/** Runs every handler as part of the trace that its event carries. Of errors a trace gets what logs may have. */
export function traceHandlers(tracing: Tracing, masking: Masking): Middleware {
  return (next) => (event, ctx) => {
    const { subscription, attempt, maxAttempts } = ctx
    return tracing.handling(
      { subscription, event, attempt, maxAttempts },
      () => next(event, ctx),
      (thrown) => masking.text(describeError(thrown), event, 'log'),
    )
  }
}
