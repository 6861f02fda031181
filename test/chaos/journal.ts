import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from './checker/entry.ts'
import { sharedMs } from './clock.ts'

type WithoutTime<Line> = Line extends unknown ? Omit<Line, 'at'> : never

/** What a process writes down, line by line. */
export interface Journal {
  /** Writes a line with the time of now. It is with the system, beyond the reach of SIGKILL, when this returns. */
  write(line: WithoutTime<Entry>): void
  /** Writes a line that knows its time. */
  writeAt(line: Entry): void
  close(): void
}

const SUFFIX = '.jsonl'

/** Opens a journal of this name in the directory, to append to. */
export function openJournal(directory: string, name: string): Journal {
  const file = openSync(join(directory, `${name}${SUFFIX}`), 'a')
  const writeAt = (line: Entry): void => {
    writeSync(file, `${JSON.stringify(line)}\n`)
  }
  return {
    write: (line) => writeAt({ ...line, at: sharedMs() }),
    writeAt,
    close: () => closeSync(file),
  }
}

/** All lines of all journals of a directory. A line that a kill cut in two was never said. */
export function readJournals(directory: string): readonly Entry[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(SUFFIX))
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n').slice(0, -1))
    .map((line) => JSON.parse(line) as Entry)
}
