import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { peerNodeVersion, peerVersion } from './peers.ts'

/** What the figures depend on, and nothing that names the machine. */
export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memoryGigabytes: number
}

/** This machine. */
export function describeMachine(): Machine {
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGigabytes: Math.round(totalmem() / 1_073_741_824),
  }
}

/** The versions of everything that took part. */
export function describeVersions(postgres: string): Readonly<Record<string, string>> {
  const own = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  return {
    commitpost: own.version,
    'graphile-worker': peerVersion('graphile-worker'),
    'pg-boss': peerVersion('pg-boss'),
    pg: peerVersion('pg'),
    node: peerNodeVersion(),
    postgres,
  }
}
