import { importPeer } from './peers.ts'
import type { ContenderSettings } from './protocol.ts'

/** The part of graphile-worker's interface that the benchmarks use. */
export interface GraphileWorker {
  run(options: GraphileOptions): Promise<{ stop(): Promise<void> }>
  runMigrations(options: GraphileOptions): Promise<void>
  Logger: new (factory: () => () => void) => object
}

interface GraphileOptions {
  readonly preset: {
    readonly worker: {
      readonly connectionString: string
      readonly concurrentJobs?: number
      readonly maxPoolSize?: number
      readonly localQueue?: { readonly size: number; readonly refetchDelay?: { readonly durationMs: number } }
      readonly completeJobBatchDelay?: number
      readonly failJobBatchDelay?: number
    }
  }
  readonly logger: object
  readonly taskList?: Readonly<Record<string, (payload: unknown) => void>>
  readonly noHandleSignals: boolean
  readonly parsedCronItems?: readonly never[]
}

/** The name of the job. */
export const TASK = 'bench_order'

/** Loads graphile-worker. */
export async function importGraphile(): Promise<GraphileWorker> {
  return await importPeer<GraphileWorker>('graphile-worker')
}

/**
 * Its options. With a local queue they are those of its own performance test (perfTest/graphile.config.js); without,
 * its defaults. Prepared statements are on by default.
 */
export function graphileOptions(
  peer: GraphileWorker,
  url: string,
  { localQueue, concurrentJobs }: ContenderSettings,
  task?: (payload: unknown) => void,
): GraphileOptions {
  const concurrency = Number(concurrentJobs ?? 0)
  return {
    preset: {
      worker: {
        connectionString: url,
        ...(concurrency > 0 && { concurrentJobs: concurrency, maxPoolSize: Math.min(concurrency, 24) + 1 }),
        ...(localQueue !== undefined && {
          localQueue: { size: Number(localQueue), refetchDelay: { durationMs: 10 } },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        }),
      },
    },
    logger: new peer.Logger(() => () => undefined),
    noHandleSignals: true,
    ...(task !== undefined && { taskList: { [TASK]: task }, parsedCronItems: [] }),
  }
}
