import { expect, test } from 'vitest'
import { cpuMicrosOfServer, type ProcessTable } from '../../bench/support/server-cpu.ts'

const POSTMASTER = 10
const TICK_MICROS = 10_000

interface Fake {
  readonly parent: number
  ticks: number
  ended: number
}

/** Processes in memory. `onRead` is told of each reading before it is answered. */
function tableOf(processes: Map<number, Fake>, onRead: (pid: number) => void = () => {}): ProcessTable {
  return {
    pids: () => [...processes.keys()],
    stat: (pid) => {
      onRead(pid)
      const found = processes.get(pid)
      if (found === undefined) throw new Error('ENOENT')
      const { parent, ticks, ended } = found
      return `${pid} (postgres: a (b)) S ${parent} 1 1 0 -1 0 0 0 0 0 ${ticks} 0 ${ended} 0 20 0 1`
    },
  }
}

const server = (): Map<number, Fake> =>
  new Map([
    [POSTMASTER, { parent: 1, ticks: 1, ended: 100 }],
    [11, { parent: POSTMASTER, ticks: 20, ended: 0 }],
    [12, { parent: POSTMASTER, ticks: 300, ended: 0 }],
    [13, { parent: 1, ticks: 5_000, ended: 0 }],
  ])

/** As the postmaster does when a child has ended. */
function reap(processes: Map<number, Fake>, pid: number): void {
  const postmaster = processes.get(POSTMASTER)
  if (postmaster !== undefined) postmaster.ended += processes.get(pid)?.ticks ?? 0
  processes.delete(pid)
}

test('counts the postmaster, its children, and those that have ended', () => {
  const processes = server()
  expect(cpuMicrosOfServer(POSTMASTER, tableOf(processes))).toBe(421 * TICK_MICROS)
  reap(processes, 12)
  expect(cpuMicrosOfServer(POSTMASTER, tableOf(processes))).toBe(421 * TICK_MICROS)
})

test.each([
  { when: 'before it was read', pid: 11 },
  { when: 'after it was read', pid: 13 },
])('a backend that ends while the others are read, $when, is counted once', ({ pid }) => {
  const processes = server()
  const table = tableOf(processes, (read) => {
    if (read === pid) reap(processes, 12)
  })
  expect(cpuMicrosOfServer(POSTMASTER, table)).toBe(421 * TICK_MICROS)
})
