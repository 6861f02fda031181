// The logical replication listener of pg-transactional-outbox with a handler that only counts.
import { setTimeout as sleep } from 'node:timers/promises'
import { startListener } from '../support/pg-transactional-outbox.ts'
import { runProgram } from '../support/program.ts'
import type { ListenerReport, ListenerTask } from '../support/protocol.ts'

await runProgram<ListenerTask>(listen)
// Where the time was up, messages that still wait for a connection would keep the process until they time out.
process.exit()

async function listen(task: ListenerTask): Promise<ListenerReport> {
  // By their ids: a message whose transaction failed comes again.
  const handled = new Set<string>()
  let firstMs = 0
  let reachEnd: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    reachEnd = resolve
  })
  const cpuBefore = process.cpuUsage()
  const stop = await startListener(task, async ({ id }) => {
    if (handled.size === 0) firstMs = performance.now()
    handled.add(id)
    if (handled.size === task.events) reachEnd()
  })
  await Promise.race([all, sleep(task.mostSeconds * 1_000)])
  const timed = handled.size
  const seconds = (performance.now() - firstMs) / 1_000
  await stop()
  const { user, system } = process.cpuUsage(cpuBefore)
  return { timed, seconds, handled: handled.size, cpuMicros: user + system }
}
