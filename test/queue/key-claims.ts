import type { KeyBacklog } from '../../src/queue/key-backlog.ts'
import { heldAt, positionsOf } from './fakes.ts'

/** Claims the given positions of one key, as one claim that was sent and has returned. */
export function claim(backlog: KeyBacklog, key: string, ...positions: number[]) {
  const number = backlog.claimSent()
  const batch = positions.map((position) => heldAt(position, { key }))
  return { batch, returned: backlog.offer(batch, number) }
}

/** Starts everything that may start. Returns the positions. */
export function takeAll(backlog: KeyBacklog): number[] {
  const taken: number[] = []
  for (let next = backlog.next(); next !== null; next = backlog.next()) taken.push(...positionsOf([next]))
  return taken
}
