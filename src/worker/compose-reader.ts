import { CommitpostError } from '../runtime/errors.ts'
import { decide } from '../settle/decide.ts'
import type { RegisteredSubscription } from '../store/subscription-store.ts'
import type { LogDelivery } from '../stream/log-delivery.ts'
import { StreamReader } from '../stream/stream-reader.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'
import { dispatcherOf, type WorkerEnvironment } from './worker-environment.ts'

/** Puts together what reads the log for a subscription. */
export function composeReader(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  { id, name, orderBy }: RegisteredSubscription,
): StreamReader {
  const { streams } = env.store
  if (streams === null) {
    throw new CommitpostError(
      'STREAM_UNAVAILABLE',
      `This store has no log to read for subscription "${name}".`,
    )
  }
  const handlers = dispatcherOf<LogDelivery>(env, resolved, async () => {
    throw new CommitpostError(
      'INVALID_STATE',
      `Subscription "${name}" reads the log, where an event has no delivery that could be completed. ` +
        'Use ctx.once, which lets the effect happen once whatever the engine.',
    )
  })
  return new StreamReader({
    ...env,
    ...env.limits,
    store: streams,
    subscription: { id, name, orderBy },
    concurrency: resolved.concurrency,
    walBudgetBytes: resolved.walBudgetBytes,
    dispatch: (delivery) => handlers.dispatch(delivery),
    interrupt: (reason, graceMs) => void handlers.interrupt(reason, { graceMs }),
    decide: (delivery, outcome) => {
      env.onAttemptEnded()
      return decide(delivery, outcome, resolved.retry, env.random)
    },
  })
}
