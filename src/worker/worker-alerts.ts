import { type AlertOptions, resolveAlertOptions } from '../alert/alert-options.ts'
import { createMonitor, type Monitor, type MonitorParts, type PokedMonitor } from '../alert/monitor.ts'
import { logSink } from '../alert/sinks/log-sink.ts'
import type { Masking } from '../event/masking.ts'
import { type Logger, silentLogger } from '../observe/logger.ts'
import { ignoreWorkerEvents, type Observer, type WorkerEvent } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Random } from '../runtime/random.ts'
import { describeError } from '../runtime/text.ts'
import type { MonitorStore } from '../store/alert-store.ts'

/** What a monitor needs from whoever it runs for. */
export interface AlertEnvironment {
  readonly store: { openMonitor(): MonitorStore }
  readonly masking: Masking
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  readonly logger: Logger
}

/** A monitor that runs without a worker. The caller has checked the options. */
export function monitorAlone(environment: AlertEnvironment, options: AlertOptions): Monitor {
  const { ids, logger } = environment
  return monitorOf(environment, options, `monitor ${ids.workerId()}`, (during, error) =>
    logger.error({ during, error: describeError(error) }, `${during} failed; the monitor goes on`),
  )
}

function monitorOf(
  { store, masking, clock, random, ids, logger }: AlertEnvironment,
  options: AlertOptions,
  holder: string,
  onFailure: MonitorParts['onFailure'],
): PokedMonitor {
  return createMonitor({
    openStore: () => store.openMonitor(),
    holder,
    options: resolveAlertOptions(options, logSink(logger)),
    masking,
    clock,
    random,
    ids,
    onFailure,
  })
}

/** The monitor of a worker. */
export interface WorkerAlerts {
  /** To be told of everything the worker does: new dead letters are told of right after the commit that made them. */
  readonly observer: Observer
  /** Null where nobody is to be told anything. */
  open(workerId: string, observer: Observer): PokedMonitor | null
}

/** The monitor that runs in a worker: by default only where there is a log to write to. */
export function workerAlerts(
  environment: AlertEnvironment,
  options: AlertOptions | false | null,
): WorkerAlerts {
  const wanted = options ?? (environment.logger === silentLogger ? false : {})
  if (wanted === false) return { observer: ignoreWorkerEvents, open: () => null }
  let monitor: PokedMonitor | null = null
  return {
    observer: (event) => {
      if (mayBeDeadLetter(event)) monitor?.poke()
    },
    open: (workerId, observer) => {
      monitor = monitorOf(environment, wanted, workerId, (during, error) =>
        observer({ kind: 'error', during, error, subscription: null }),
      )
      return monitor
    },
  }
}

function mayBeDeadLetter({ kind }: WorkerEvent): boolean {
  return kind === 'dead' || kind === 'unmatched'
}
