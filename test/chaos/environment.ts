import type { Entry, FaultEntry } from './checker/entry.ts'

/** What nobody broke on purpose: the machine was too busy. */
const OWN_DOING: ReadonlySet<string> = new Set(['stall', 'slowDatabase'])

/** Leaves out stalls that are only what the nemesis's faults look like from inside. */
export function withoutEchoes(entries: readonly Entry[]): readonly Entry[] {
  const faults = entries.filter((entry) => entry.kind === 'fault')
  const planned = faults.filter(({ name }) => !OWN_DOING.has(name))
  return entries.filter(
    (entry) =>
      entry.kind !== 'fault' || !OWN_DOING.has(entry.name) || !planned.some((one) => covers(one, entry)),
  )
}

function covers(planned: FaultEntry, stall: FaultEntry): boolean {
  const meets = planned.at <= stall.until && stall.at <= planned.until
  const { workers } = planned
  return meets && (workers === null || (stall.workers?.every((worker) => workers.includes(worker)) ?? false))
}
