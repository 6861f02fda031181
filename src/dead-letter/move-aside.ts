import type { Clock } from '../runtime/clock.ts'
import type { OperatorAct } from '../runtime/operator-act.ts'
import type { MovedAside, RedriveStore } from '../store/redrive-store.ts'

/** What is in hand or locked is given back or ends within moments, or takes its time. */
const MOST_LOOKS = 20
const LOOK_AGAIN_MS = 50

/** Moves a blocked key aside, part by part. Gives up, and says so, where somebody keeps one of its events in hand. */
export async function moveKeyAside(
  store: Pick<RedriveStore, 'moveAside'>,
  clock: Clock,
  subscription: string,
  orderingKey: string,
  act: OperatorAct,
): Promise<MovedAside> {
  let moved = 0
  for (let looks = 0; looks < MOST_LOOKS; ) {
    const part = await store.moveAside(subscription, orderingKey, act.operator, act.note ?? null)
    moved += part.moved
    if (part.free) return { moved, free: true }
    if (part.moved > 0) continue
    looks += 1
    await clock.sleep(LOOK_AGAIN_MS)
  }
  return { moved, free: false }
}
