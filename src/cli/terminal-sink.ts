import type { AlertSink } from '../alert/alert.ts'
import type { AlertOptions } from '../alert/alert-options.ts'
import { textBlock } from '../alert/text-block.ts'
import type { Invocation } from './command.ts'
import { safeBlock } from './text/safe.ts'

type Printing = Pick<Invocation<unknown>, 'terminal' | 'globals' | 'language'>

/** Prints alerts where a person is looking: as blocks, or, for programs, as lines of JSON. */
export function terminalSink({ terminal, globals }: Printing): AlertSink {
  return {
    name: 'terminal',
    // Beside a worker's log that only warns, a report is asked for with --debug.
    takesReports: globals.json || globals.debug,
    send: async (alert) => {
      if (globals.json) terminal.printJsonLine(alert)
      else terminal.print(safeBlock(textBlock(alert)))
    },
  }
}

/** Takes alerts and leaves it to the command to print what was taken. */
export const quietSink: AlertSink = { name: 'terminal', send: async () => {} }

/** The options of a config; where they name no sink, alerts are printed, in the language of the command line. */
export function withTerminalSink(
  options: AlertOptions | undefined,
  invocation: Printing,
  sink: AlertSink = terminalSink(invocation),
): AlertOptions {
  return { language: invocation.language, sinks: [sink], ...options }
}
