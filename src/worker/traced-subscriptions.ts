import { traceHandlers } from '../dispatch/trace-handlers.ts'
import { wrapHandlers } from '../dispatch/wrap-handlers.ts'
import type { Masking } from '../event/masking.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'

/** The subscriptions with every handler as part of the trace that its event carries; unchanged without a tracer. */
export function tracedSubscriptions(
  subscriptions: readonly ResolvedSubscription[],
  tracing: Tracing | undefined,
  masking: Masking,
): readonly ResolvedSubscription[] {
  if (tracing === undefined) return subscriptions
  const around = [traceHandlers(tracing, masking)]
  return subscriptions.map((each) => ({ ...each, handlers: wrapHandlers(each.handlers, around) }))
}
