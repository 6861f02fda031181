/** What a signal stops. */
export interface Stoppable {
  stop(): Promise<void>
}

/** The part of `process` that this needs. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown
  off(signal: 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown
  exit(code: number): never | void
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const

/**
 * Stops the worker on the first SIGTERM or SIGINT, and ends the process on the second, as nobody will wait any longer.
 * Returns the way to take that back.
 */
export function stopOnSignals(
  worker: Stoppable,
  onStopped: (error: unknown) => void = () => {},
  source: SignalSource = process,
): () => void {
  let isStopping = false
  const listener = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      source.exit(signal === 'SIGINT' ? EXIT_CODES.SIGINT : EXIT_CODES.SIGTERM)
      return
    }
    isStopping = true
    worker.stop().then(() => onStopped(undefined), onStopped)
  }
  for (const signal of SIGNALS) source.on(signal, listener)
  return () => {
    for (const signal of SIGNALS) source.off(signal, listener)
  }
}

/** Starts the worker and resolves once a SIGTERM or SIGINT has stopped it. A second signal ends the process at once. */
export async function runUntilSignal(
  worker: Stoppable & { start(): Promise<void> },
  source: SignalSource = process,
): Promise<void> {
  let takeBack: () => void = () => {}
  const stopped = new Promise<void>((resolve, reject) => {
    takeBack = stopOnSignals(
      worker,
      (error) => {
        if (error === undefined) resolve()
        else reject(error)
      },
      source,
    )
  })
  try {
    await worker.start()
    await stopped
  } finally {
    takeBack()
  }
}
