import { BatchDispatcher } from '../dispatch/batch-dispatcher.ts'
import type { EventDispatcher } from '../dispatch/dispatcher.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import { decide } from '../settle/decide.ts'
import type { RegisteredSubscription } from '../store/subscription-store.ts'
import type { LogDelivery } from '../stream/log-delivery.ts'
import { StreamReader } from '../stream/stream-reader.ts'
import { mayGoTogether, mostAtOnce, openTransport } from './open-transport.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'
import { dispatcherOf, type WorkerEnvironment } from './worker-environment.ts'

/** What reads the log, and how what leads to its destination is let go. */
export interface ComposedReader {
  readonly reader: StreamReader
  close(): Promise<void>
}

/** Puts together what reads the log for a subscription. A relay has a session of its own here: of one, sends take turns. */
export async function composeReader(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  { id, name, orderBy }: RegisteredSubscription,
): Promise<ComposedReader> {
  const streams = await env.store.openStreams()
  if (streams === null) {
    const message = `This store has no log to read for subscription "${name}".`
    throw new RefusedError('stream-of-store', message, { data: { subscription: name } })
  }
  const session = openTransport(env, resolved)
  const handlers =
    session === null
      ? handlersOf(env, resolved)
      : new BatchDispatcher<LogDelivery>({
          session,
          clock: env.clock,
          batchSize: resolved.batchSize,
          beforeSend: () => reader.expire(),
        })
  const reader = new StreamReader({
    ...env,
    ...env.limits,
    clock: env.leaseClock,
    store: streams,
    subscription: { id, name, orderBy },
    concurrency: mostAtOnce(resolved),
    together: mayGoTogether(resolved),
    walBudgetBytes: resolved.walBudgetBytes,
    dispatch: (delivery) => handlers.dispatch(delivery),
    interrupt: (reason, graceMs) => void handlers.interrupt(reason, { graceMs }),
    decide: (delivery, outcome) => {
      env.onAttemptEnded()
      return decide(delivery, outcome, resolved.retry, env.random)
    },
  })
  return { reader, close: async () => session?.close() }
}

function handlersOf(env: WorkerEnvironment, resolved: ResolvedSubscription): EventDispatcher<LogDelivery> {
  return dispatcherOf<LogDelivery>(env, resolved, async () => {
    throw new CommitpostError(
      'INVALID_STATE',
      `Subscription "${resolved.definition.name}" reads the log, where an event has no delivery that could be ` +
        'completed. Use ctx.once, which lets the effect happen once whatever the engine.',
    )
  })
}
