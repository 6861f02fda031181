import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bePatient } from '../support/patience.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { compiledDirectory } from '../support/program.ts'
import { available, postgresAvailable } from '../support/servers.ts'
import type { Entry } from './checker/entry.ts'
import { countAnomalies } from './checker/judge.ts'
import { faketimeLibrary } from './faketime.ts'
import { readJournals } from './journal.ts'
import type { FaultName } from './plan.ts'
import { reportText } from './report.ts'
import { type ChaosReport, runChaos } from './run.ts'
import { canMountSmallDisk } from './server.ts'

bePatient()

/** Of these something is under way whenever the nemesis strikes. */
const ENOUGH = 60

/** Everything the nemesis knows comes in these two; their seeds are such that it does so within seconds. */
const halves: readonly { seed: number; title: string; faults: readonly FaultName[] }[] = [
  {
    seed: 20_275,
    title: 'workers killed, paused, cut off, deployed anew, with wrong clocks',
    faults: [
      'kill',
      'stop',
      'silence',
      'loseReply',
      'skewClock',
      'deploy',
      'killPublisher',
      'terminateWorker',
    ],
  },
  {
    seed: 20_293,
    title: 'the database crashed, full, partitioned, with an old snapshot, its answers to COMMIT lost',
    faults: [
      'restart',
      'fillDisk',
      'partition',
      'terminateAll',
      'holdSnapshot',
      'cut',
      'cutPublisher',
      'loseCommitReply',
      'loseCommitRequest',
    ],
  },
]

interface ShortRun extends ChaosReport {
  readonly entries: readonly Entry[]
}

async function shortRun(seed: number, faults: readonly FaultName[]): Promise<ShortRun> {
  const journals = await mkdtemp(join(tmpdir(), 'commitpost-journals-'))
  const report = await runChaos({
    seed,
    faults,
    durationMs: 9_000,
    leaseMs: 2_000,
    programs: compiledDirectory,
    journals,
    smallDisk: available('the right to mount a tmpfs (root on Linux), for full disks', canMountSmallDisk()),
    faketime: faketimeLibrary(),
    recoveryBarMs: null, // how fast is for `npm run chaos` to say: here the machine does much else
    leastPublished: ENOUGH,
    quietMs: PATIENCE_MS,
    onLine: () => undefined,
  })
  const entries = readJournals(journals)
  if (report.ok) await rm(journals, { recursive: true })
  else process.stderr.write(`${reportText(report)}\n`)
  return { ...report, entries }
}

describe.skipIf(!postgresAvailable())('chaos: four worker processes, three publishers and a nemesis', () => {
  test.each(halves)(
    'seed $seed: nothing lost, invented, early, changed, out of order or stuck; $title',
    async ({ seed, faults }) => {
      const { verdict, crashes, plan, missed, entries } = await shortRun(seed, faults)

      expect(countAnomalies(verdict)).toEqual({
        lost: 0,
        stuck: 0,
        phantom: 0,
        early: 0,
        identity: 0,
        inversion: 0,
        gap: 0,
        overlap: 0,
        duplicate: 0,
      })
      expect(crashes).toEqual([])
      const possible = faults.filter((name) => name !== 'fillDisk' || canMountSmallDisk())
      const struck = plan.filter((step) => !missed.includes(step))
      expect(new Set(struck.map(({ name }) => name))).toEqual(new Set(possible))
      const { committed, runs, excused } = verdict.totals
      expect(committed).toBeGreaterThanOrEqual(ENOUGH)
      expect(runs).toBeGreaterThan(committed)
      // Of the others nothing may be repeated, and nothing may run beside them.
      expect(runs - excused).toBeGreaterThanOrEqual(ENOUGH)
      if (faults.includes('deploy')) expect(seesNewType(entries)).toBe(true)
    },
  )

  function seesNewType(entries: readonly Entry[]): boolean {
    return entries.some(
      (entry) => entry.kind === 'seen' && entry.subscription === 'deployed' && entry.type === 'Turned',
    )
  }
})
