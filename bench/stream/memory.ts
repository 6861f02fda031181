import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { loadBacklog } from '../support/commitpost.ts'
import type { Stage } from './stage.ts'

const WATCHED_MS = 10_000

/** The most memory that a reader is seen to have resident, in MB, while all events stand behind a handler that never returns. */
export async function measureMemory({ database, events, keys }: Stage): Promise<number> {
  const program = fileURLToPath(new URL('../programs/stopped-stream.js', import.meta.url))
  const child = fork(program, [database.url])
  try {
    await once(child, 'message')
    await loadBacklog(database.pool, events, keys)
    const deadline = performance.now() + WATCHED_MS
    let most = 0
    while (performance.now() < deadline) {
      most = Math.max(most, await residentOf(child))
      await sleep(100)
    }
    return most / 1_000_000
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

async function residentOf(child: ChildProcess): Promise<number> {
  child.send('how much?')
  const [bytes] = (await once(child, 'message')) as [number]
  return bytes
}
