#!/usr/bin/env node
import { basename, relative, sep } from 'node:path'
import process from 'node:process'
import { textProperty } from '../runtime/property.ts'
import { COMMANDS } from './commands.ts'
import { createServices } from './composition.ts'
import { runProgram } from './run.ts'
import { untilInterrupted } from './signals.ts'
import { createTerminal } from './terminal.ts'

// Whoever reads the output may stop at any time (`| head`): that is no failure of ours.
process.stdout.on('error', (error) => process.exit(textProperty(error, 'code') === 'EPIPE' ? 0 : 1))

const exitCode = await runProgram(process.argv.slice(2), {
  commands: COMMANDS,
  services: createServices(),
  terminal: createTerminal({ stdout: process.stdout, stderr: process.stderr, env: process.env }),
  process: {
    cwd: process.cwd(),
    env: process.env,
    program: programName(process.argv[1] ?? ''),
    untilInterrupted: () => untilInterrupted(process),
  },
})

// Clients of a config file may keep the process alive; all output has to be out before it ends.
process.stderr.write('', () => process.stdout.write('', () => process.exit(exitCode)))

/** How to call this program again from the same place. */
function programName(file: string): string {
  if (file.includes(`${sep}.bin${sep}`)) return 'npx commitpost'
  return basename(file) === 'commitpost' ? 'commitpost' : `node ${relative(process.cwd(), file)}`
}
