import { Strays } from '../queue/strays.ts'
import { SuspectQuarantine } from '../queue/suspects.ts'
import type { Clock } from '../runtime/clock.ts'
import { SoloGate } from '../runtime/gate.ts'

/** What all workers of a process share: a suspect is alone only where none of them runs anything beside it. */
export interface ProcessQuarantine {
  /** Which every handler passes. */
  readonly soloGate: SoloGate
  readonly quarantine: SuspectQuarantine
  /** Whose handlers are counted. */
  readonly strays: Strays
}

const byClock = new WeakMap<Clock, ProcessQuarantine>()

/** The one of this process. There is one time in a process: whoever hands in another clock plays another process. */
export function processQuarantine(clock: Clock): ProcessQuarantine {
  const known = byClock.get(clock)
  if (known !== undefined) return known
  const soloGate = new SoloGate()
  const made = { soloGate, quarantine: new SuspectQuarantine(soloGate, clock), strays: new Strays() }
  byClock.set(clock, made)
  return made
}
