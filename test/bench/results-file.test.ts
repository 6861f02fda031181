import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { publishScenario } from '../../bench/scenarios/publish.ts'
import { Results } from '../../bench/support/results.ts'
import { type Circumstances, resumeResults, writeFigures } from '../../bench/support/results-file.ts'

const CIRCUMSTANCES: Circumstances = {
  events: 200_000,
  machine: { cores: 2, cpu: 'a', memoryGigabytes: 8 },
  versions: { postgres: '18' },
  server: { fsync: 'on' },
  // A setting that is not given is not in the file either.
  method: { publish: publishScenario.method, other: { seconds: undefined } },
}
const SAMPLE = { scenario: 'publish', contender: 'a', round: 1, figures: { perSecond: 1 } }

let directory = ''
let path = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'commitpost-bench-'))
  path = join(directory, 'core.json')
  await writeFigures(path, CIRCUMSTANCES, new Results([SAMPLE]), [])
})
afterAll(() => rm(directory, { recursive: true }))

test('rounds of the same circumstances are put together', async () => {
  expect((await resumeResults(path, CIRCUMSTANCES)).samples).toEqual([SAMPLE])
})

test('rounds of another window or another server are refused, with what differs', async () => {
  const method = { ...CIRCUMSTANCES.method, publish: { ...publishScenario.method, seconds: 5 } }
  await expect(resumeResults(path, { ...CIRCUMSTANCES, method })).rejects.toThrow(
    'was measured under other circumstances (method). Run without --resume',
  )
  await expect(resumeResults(path, { ...CIRCUMSTANCES, method, server: { fsync: 'off' } })).rejects.toThrow(
    '(server, method)',
  )
})

test('rounds from before the method was written down are refused', async () => {
  const { method: _, ...before } = CIRCUMSTANCES
  const old = join(directory, 'old.json')
  await writeFigures(old, before as Circumstances, new Results([SAMPLE]), [])
  await expect(resumeResults(old, CIRCUMSTANCES)).rejects.toThrow('(method)')
})
