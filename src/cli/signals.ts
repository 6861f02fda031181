import { onFirstSignal, type SignalSource } from '../runtime/signals.ts'

/**
 * Aborts at the first SIGINT or SIGTERM, with the signal's name as its reason, so that the work can be brought to its
 * end. The second signal ends the process at once.
 */
export function untilInterrupted(source: SignalSource): AbortSignal {
  const controller = new AbortController()
  onFirstSignal(source, (signal) => controller.abort(signal))
  return controller.signal
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
