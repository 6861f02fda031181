import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { faketimeLibrary } from '../chaos/faketime.ts'
import { FAULT_NAMES, type FaultName } from '../chaos/plan.ts'
import { reportText } from '../chaos/report.ts'
import { type ChaosOptions, runChaos } from '../chaos/run.ts'
import { canMountSmallDisk } from '../chaos/server.ts'
import { available } from '../support/servers.ts'

// npm run chaos -- --seed N --minutes M [--json] [--keep] [--lease-ms N] [--only kill,stop]
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(randomInt(1, 1_000_000)) },
    minutes: { type: 'string', default: '1' },
    'lease-ms': { type: 'string', default: '3000' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})

/** Beside the lease: time to notice, to claim and to catch up. */
const RECOVERY_MS = 5_000
const QUIET_MS = 60_000
/** So many events are published at the end while nothing is broken. */
const IN_PEACE = 60

function optionsOf(journals: string): ChaosOptions {
  const [seed, minutes, leaseMs] = [values.seed, values.minutes, values['lease-ms']].map(Number)
  if (!Number.isSafeInteger(seed) || !(Number(minutes) > 0) || !(Number(leaseMs) >= 500)) {
    throw new Error('--seed takes a whole number, --minutes one above 0, --lease-ms one from 500 on')
  }
  return {
    seed: Number(seed),
    durationMs: Number(minutes) * 60_000,
    leaseMs: Number(leaseMs),
    programs: fileURLToPath(new URL('../..', import.meta.url)),
    journals,
    smallDisk: available('the right to mount a tmpfs (root on Linux), for full disks', canMountSmallDisk()),
    faketime: faketimeLibrary(),
    recoveryBarMs: Number(leaseMs) + RECOVERY_MS,
    leastPublished: IN_PEACE,
    quietMs: QUIET_MS,
    ...(values.only === undefined ? {} : { faults: faultsOf(values.only) }),
    onLine: (line) => process.stderr.write(`${line}\n`),
  }
}

function faultsOf(text: string): readonly FaultName[] {
  const names = text.split(',')
  const unknown = names.filter((name) => !FAULT_NAMES.some((known) => known === name))
  if (unknown.length > 0) throw new Error(`--only takes ${FAULT_NAMES.join(', ')}; not ${unknown.join(', ')}`)
  return names as FaultName[]
}

const directory = mkdtempSync(join(tmpdir(), 'commitpost-journals-'))
const report = await runChaos(optionsOf(directory))
const text = values.json ? JSON.stringify(report, null, 2) : reportText(report)
process.stdout.write(`${text}\n`)
if (report.ok && !values.keep) rmSync(directory, { recursive: true })
else writeFileSync(join(directory, 'report.json'), JSON.stringify(report, null, 2))
process.exitCode = report.ok ? 0 : 1
