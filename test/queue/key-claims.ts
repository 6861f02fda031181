import type { GivenBack } from '../../src/queue/backlog.ts'
import type { Held } from '../../src/queue/hand.ts'
import type { KeyBacklog } from '../../src/queue/key-backlog.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'
import { heldAt, positionsOf } from './fakes.ts'

/** Claims the given positions of one key, as one claim that was sent and has returned. */
export function claim(
  backlog: KeyBacklog,
  key: string,
  ...positions: number[]
): {
  readonly batch: readonly Held<LaneDelivery>[]
  readonly returned: readonly GivenBack<LaneDelivery>[]
} {
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
