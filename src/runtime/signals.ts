/** The part of `process` that signals need. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown
  off(signal: 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown
  exit(code: number): unknown
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const

/**
 * Calls back on the first SIGTERM or SIGINT, and ends the process on the second, as nobody will wait any longer.
 * Returns the way to take that back.
 */
export function onFirstSignal(source: SignalSource, callBack: (signal: NodeJS.Signals) => void): () => void {
  let isSecond = false
  const listener = (signal: NodeJS.Signals): void => {
    if (isSecond) {
      source.exit(signal === 'SIGINT' ? EXIT_CODES.SIGINT : EXIT_CODES.SIGTERM)
      return
    }
    isSecond = true
    callBack(signal)
  }
  for (const signal of SIGNALS) source.on(signal, listener)
  return () => {
    for (const signal of SIGNALS) source.off(signal, listener)
  }
}
