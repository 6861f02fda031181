import type { Catalogue } from '../event/catalogue.ts'
import type { Outbox } from '../outbox.ts'
import type { Relay, Subscription } from '../worker/subscription.ts'
import type { WorkerOptions } from '../worker/worker-options.ts'

/** What `commitpost worker` and `commitpost monitor` run: the default export of their config file. */
export interface WorkerConfig<C extends Catalogue = Catalogue, Tx = never> {
  /** What `createOutbox` made. */
  readonly outbox: Pick<Outbox<C, Tx>, 'worker' | 'monitor' | 'retention'>
  /** Subscriptions and relays, as for `outbox.worker`. */
  readonly subscriptions: readonly (Subscription<C, Tx> | Relay)[]
  /** As for `outbox.worker`. Signals are the program's business, so `handleSignals` has no effect. */
  readonly options?: WorkerOptions
  /** Called once the worker has stopped: to end pools and other clients of the handlers. */
  readonly close?: () => Promise<void> | void
}

/** What a config that is a function is told. */
export interface WorkerConfigContext {
  /** `--database`, else `DATABASE_URL`, else undefined. */
  readonly databaseUrl: string | undefined
  /** `--schema`, else the default. */
  readonly schema: string
}

/** A config, or a function that makes one of the command line's options. */
export type WorkerConfigSource<C extends Catalogue = Catalogue, Tx = never> =
  | WorkerConfig<C, Tx>
  | ((context: WorkerConfigContext) => WorkerConfig<C, Tx> | Promise<WorkerConfig<C, Tx>>)

/**
 * Types a config file and does nothing else:
 * `export default defineWorkerConfig({ outbox, subscriptions: [ … ] })`.
 */
export function defineWorkerConfig<C extends Catalogue, Tx>(
  source: WorkerConfigSource<C, Tx>,
): WorkerConfigSource<C, Tx> {
  return source
}
