import { readdirSync, readFileSync } from 'node:fs'

/** Processes as the system tells of them: `/proc`, unless a test has its own. */
export interface ProcessTable {
  pids(): readonly number[]
  /** The text of `/proc/<pid>/stat`; throws where there is no such process. */
  stat(pid: number): string
}

const proc: ProcessTable = {
  pids: () =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number),
  stat: (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8'),
}

const TICKS_PER_SECOND = 100

/** CPU time of the server so far, in microseconds: of its processes that run and of those that have ended. */
export function cpuMicrosOfServer(postmaster: number, table: ProcessTable = proc): number {
  // The postmaster's times of ended children hold those it has reaped. One that is reaped while the others are read
  // would be missed or counted twice, so that the reading is good only if there was none. It cannot go on for ever:
  // each that counts has used a tick, which is longer than a reading takes.
  for (;;) {
    const before = statOf(postmaster, table)
    const running = table
      .pids()
      .map((pid) => statOf(pid, table))
      .filter((stat) => stat?.parent === postmaster)
      .reduce((sum, stat) => sum + totalOf(stat), 0)
    const after = statOf(postmaster, table)
    if (before?.endedTicks === after?.endedTicks) {
      return ((totalOf(after) + running) * 1_000_000) / TICKS_PER_SECOND
    }
  }
}

/** The process that started this one; null where that cannot be told. */
export function parentOf(pid: number, table: ProcessTable = proc): number | null {
  return statOf(pid, table)?.parent ?? null
}

interface ProcessStat {
  readonly parent: number
  readonly ownTicks: number
  /** Of its children that have ended and were waited for. */
  readonly endedTicks: number
}

function statOf(pid: number, table: ProcessTable): ProcessStat | null {
  try {
    const text = table.stat(pid)
    // The name before it may hold anything: state, parent and, from the 12th on, utime, stime, cutime, cstime.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15)
    return { parent: fields[1] ?? 0, ownTicks: utime + stime, endedTicks: cutime + cstime }
  } catch {
    return null
  }
}

function totalOf(stat: ProcessStat | null): number {
  return stat === null ? 0 : stat.ownTicks + stat.endedTicks
}
