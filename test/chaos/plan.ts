import { type Random, seededRandom } from '../../src/runtime/random.ts'

/** Everything the nemesis can do. */
export const FAULT_NAMES = [
  'kill',
  'stop',
  'cut',
  'silence',
  'loseReply',
  'killPublisher',
  'cutPublisher',
  'loseCommitReply',
  'loseCommitRequest',
  'terminateWorker',
  'terminateAll',
  'restart',
  'partition',
  'fillDisk',
  'holdSnapshot',
  'skewClock',
  'deploy',
] as const
export type FaultName = (typeof FAULT_NAMES)[number]

/** One act of the nemesis. */
export interface Step {
  readonly id: string
  /** When, in milliseconds from the beginning. */
  readonly atMs: number
  readonly name: FaultName
  /** Which worker or publisher, by number; ignored by what hits everybody. */
  readonly target: number
  /** How long it lasts, where it lasts. */
  readonly lastsMs: number
}

/** What a plan is drawn for. */
export interface PlanOptions {
  readonly seed: number
  readonly durationMs: number
  readonly leaseMs: number
  readonly workers: number
  readonly publishers: number
  /** What can be done here. */
  readonly faults: readonly FaultName[]
}

/** Faults that need every worker for themselves: two of them at once would only hide each other. */
const ALONE: ReadonlySet<FaultName> = new Set(['restart', 'fillDisk', 'partition', 'deploy'])
const PUBLISHERS: ReadonlySet<FaultName> = new Set([
  'killPublisher',
  'cutPublisher',
  'loseCommitReply',
  'loseCommitRequest',
])

/**
 * Draws what the nemesis does and when: the same for the same seed. Everything there is comes once before anything
 * comes twice, and nothing hits one that is hit already.
 */
export function drawPlan({
  seed,
  durationMs,
  leaseMs,
  workers,
  publishers,
  faults,
}: PlanOptions): readonly Step[] {
  const random = seededRandom(seed)
  const steps: Step[] = []
  const busyUntil = Array.from({ length: workers }, () => 0)
  let bag: FaultName[] = []
  for (let atMs = leaseMs / 2; atMs < durationMs; ) {
    if (bag.length === 0) bag = shuffled(random, faults)
    const name = bag.pop() as FaultName
    const lastsMs = Math.round(lastsOf(random, name, leaseMs))
    const first = Math.floor(random() * (PUBLISHERS.has(name) ? publishers : workers))
    const target = PUBLISHERS.has(name) ? first : idlest(busyUntil, first, atMs)
    const hit = hits(name, target, workers)
    atMs = Math.max(atMs, ...hit.map((worker) => busyUntil[worker] ?? 0))
    for (const worker of hit) busyUntil[worker] = atMs + lastsMs
    steps.push({ id: `${steps.length + 1}-${name}`, atMs: Math.round(atMs), name, target, lastsMs })
    // Now and then there is peace, so that what was broken can be seen to recover by itself.
    atMs += random() < 0.1 ? leaseMs + 5_000 : leaseMs * (0.15 + 0.5 * random())
  }
  return steps.filter(({ atMs }) => atMs < durationMs)
}

/** Which workers the fault keeps busy. */
function hits(name: FaultName, target: number, workers: number): readonly number[] {
  if (ALONE.has(name)) return Array.from({ length: workers }, (_, worker) => worker)
  return PUBLISHERS.has(name) || name === 'holdSnapshot' || name === 'terminateAll' ? [] : [target]
}

/** The drawn worker, or the next one that nothing is happening to. */
function idlest(busyUntil: readonly number[], first: number, atMs: number): number {
  for (let n = 0; n < busyUntil.length; n += 1) {
    const worker = (first + n) % busyUntil.length
    if ((busyUntil[worker] ?? 0) <= atMs) return worker
  }
  return first
}

/** How many leases a fault lasts, at least and at most. Those that are not named are over at once. */
const LASTS: { readonly [Name in FaultName]?: readonly [number, number] } = {
  stop: [1.2, 2.2],
  silence: [0.3, 1.8],
  partition: [0.3, 1],
  fillDisk: [0.5, 1.2],
  holdSnapshot: [1, 3],
  skewClock: [1, 3],
  deploy: [1, 1],
}

function lastsOf(random: Random, name: FaultName, leaseMs: number): number {
  const [least, most] = LASTS[name] ?? [0, 0]
  return leaseMs * (least + (most - least) * random())
}

function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  const rest = [...items]
  for (let last = rest.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const item = rest[last] as Item
    rest[last] = rest[other] as Item
    rest[other] = item
  }
  return rest
}

/** What the nemesis is going to do, for people. */
export function planText(seed: number, plan: readonly Step[]): string {
  const steps = plan.map(({ atMs, name, target, lastsMs }) => {
    const lasts = lastsMs > 0 ? ` for ${(lastsMs / 1_000).toFixed(1)} s` : ''
    return `  ${(atMs / 1_000).toFixed(1).padStart(7)} s  ${name} ${target}${lasts}`
  })
  return [`seed ${seed}, ${plan.length} faults`, ...steps].join('\n')
}
