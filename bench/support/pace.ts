import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `send` so many times a second, whatever the calls take, and ends when all of them have. */
export async function pace(
  count: number,
  perSecond: number,
  send: (index: number) => Promise<unknown>,
): Promise<void> {
  const startedAt = performance.now()
  const sent: Promise<unknown>[] = []
  for (let index = 0; index < count; index += 1) {
    const wait = startedAt + (index * 1_000) / perSecond - performance.now()
    if (wait > 0) await sleep(wait)
    sent.push(send(index))
  }
  await Promise.all(sent)
}
