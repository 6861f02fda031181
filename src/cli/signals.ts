/** The part of `process` that signals need. */
export interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown
  exit(code: number): unknown
}

/**
 * Aborts at the first SIGINT or SIGTERM, with the signal's name as its reason, so that the work can be brought to its
 * end. The second signal ends the process at once: nobody will wait any longer.
 */
export function untilInterrupted(source: SignalSource): AbortSignal {
  const controller = new AbortController()
  const listener = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) source.exit(signal === 'SIGINT' ? 130 : 143)
    else controller.abort(signal)
  }
  source.on('SIGINT', listener)
  source.on('SIGTERM', listener)
  return controller.signal
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
