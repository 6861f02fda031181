import { methodsProblem, refuseProblems } from '../runtime/option-checks.ts'
import { onFirstSignal, type SignalSource } from '../runtime/signals.ts'

/** What a signal stops. */
export interface Stoppable {
  stop(): Promise<void>
}

/**
 * Stops the worker on the first SIGTERM or SIGINT, and ends the process on the second, as nobody will wait any longer.
 * Returns the way to take that back.
 */
export function stopOnSignals(
  worker: Stoppable,
  onStopped: (error: unknown) => void = () => {},
  source: SignalSource = process,
): () => void {
  refuseProblems('stopOnSignals', [methodsProblem('worker', worker ?? null, ['stop'])])
  return onFirstSignal(source, () => {
    worker.stop().then(() => onStopped(undefined), onStopped)
  })
}

/** Starts the worker and resolves once a SIGTERM or SIGINT has stopped it. A second signal ends the process at once. */
export async function runUntilSignal(
  worker: Stoppable & { start(): Promise<void> },
  source: SignalSource = process,
): Promise<void> {
  refuseProblems('runUntilSignal', [methodsProblem('worker', worker ?? null, ['start', 'stop'])])
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
