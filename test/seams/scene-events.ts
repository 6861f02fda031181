import { randomUUID } from 'node:crypto'
import { type BatchInput, defineEvents, unchecked } from '../../src/index.ts'
import type { Identity } from '../chaos/checker/entry.ts'

/** What the handler of an event does besides being seen to run. */
export type Deed = 'nothing' | 'fails once' | 'dies until mended' | 'once' | 'completes'

/** An event of a scene. */
export interface SceneEvent {
  readonly eventId: string
  readonly key: string
  readonly seq: number
  readonly does: Deed
}

export const catalogue = defineEvents({
  StepTaken: {
    stream: 'seam.step',
    aggregate: 'walk',
    schema: unchecked<{ seq: number; does: Deed }>(),
  },
})

/** Events in the order they are published: `n` of one key, all doing the same. */
export function events(key: string, does: Deed, n = 1, firstSeq = 0): readonly SceneEvent[] {
  return Array.from({ length: n }, (_, index) => ({
    eventId: randomUUID(),
    key,
    seq: firstSeq + index,
    does,
  }))
}

/** What the handler of one that completes publishes: always the same, however often it runs. */
export function followUp({ eventId, key }: SceneEvent): SceneEvent {
  const id = `${eventId.slice(0, -4)}${eventId.slice(-4) === 'ffff' ? '0000' : 'ffff'}`
  return { eventId: id, key: `${key}-next`, seq: 0, does: 'nothing' }
}

/** An event as both its publisher and its handler know it. */
export function identityOf({ eventId, key, seq, does }: SceneEvent): Identity {
  return { eventId, type: 'StepTaken', key, digest: `${seq} ${does}` }
}

/** An event as the publisher takes it. */
export function toInput(event: SceneEvent): BatchInput<typeof catalogue> & { readonly eventId: string } {
  return { ...toNewInput(event), eventId: event.eventId }
}

/** The same without its id, which `withIds` gives it. */
export function toNewInput({ key, seq, does }: SceneEvent): BatchInput<typeof catalogue> {
  return { type: 'StepTaken', aggregateId: key, payload: { seq, does } }
}
