// The frame around both sides of a latency run: the same pace, the same clock, the same counting.
import { pace } from './pace.ts'
import { type BenchPayload, nowMicros, payloadOf } from './payload.ts'
import { runProgram } from './program.ts'
import type { LatencyReport, LatencyTask } from './protocol.ts'

/** What a contender does on either side. */
export interface LatencyContender {
  /** Starts a worker; returns the way to stop it. */
  work(task: LatencyTask, onPayload: (payload: BenchPayload) => void): Promise<() => Promise<void>>
  /** Connects; returns the way to send one payload in a transaction of its own, and the way to end. */
  connect(task: LatencyTask): Promise<{
    send(payload: BenchPayload): Promise<unknown>
    close(): Promise<void>
  }>
}

/** Runs the side that the task names. */
export async function runLatency(contender: LatencyContender): Promise<void> {
  await runProgram<LatencyTask>(async (task, talk) => {
    if (task.role === 'worker') return await receive(contender, task, () => talk.ready())
    const connection = await contender.connect(task)
    await talk.ready()
    const latencies: number[] = []
    await pace(task.warmUp + task.events, task.perSecond, async (index) => {
      const sentAt = nowMicros()
      await connection.send({ ...payloadOf(index), sentAt })
      if (index >= task.warmUp) latencies.push(nowMicros() - sentAt)
    })
    await connection.close()
    return { latencies } satisfies LatencyReport
  })
}

async function receive(
  contender: LatencyContender,
  task: LatencyTask,
  ready: () => Promise<void>,
): Promise<LatencyReport> {
  const latencies: number[] = []
  let received = 0
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const stop = await contender.work(task, ({ orderId, sentAt = Number.NaN }) => {
    received += 1
    if (orderId >= task.warmUp) latencies.push(nowMicros() - sentAt)
    if (received === task.warmUp + task.events) finish()
  })
  await ready()
  await finished
  await stop()
  return { latencies }
}
