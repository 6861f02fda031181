import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fault } from './checker/lines.ts'
import { sharedMs } from './clock.ts'
import { withoutEchoes } from './environment.ts'
import { openJournal, readJournals } from './journal.ts'

test('journals keep every line with its time; what a kill cut in two was never said', () => {
  const directory = mkdtempSync(join(tmpdir(), 'commitpost-journal-test-'))
  const before = sharedMs()
  const journal = openJournal(directory, 'one')
  journal.write({ kind: 'died', worker: 'w' })
  journal.writeAt(fault(1, 2, null))
  journal.close()
  openJournal(directory, 'two').write({ kind: 'died', worker: 'x' })
  appendFileSync(join(directory, 'two.jsonl'), '{"kind":"die')

  const lines = readJournals(directory)

  expect(lines.map(({ kind }) => kind).toSorted()).toEqual(['died', 'died', 'fault'])
  expect(
    lines.filter(({ kind }) => kind === 'died').every(({ at }) => at >= before && at <= sharedMs()),
  ).toBe(true)
  rmSync(directory, { recursive: true })
})

test('a stall counts as a fault unless it is what a fault of the nemesis looks like from inside', () => {
  const stop = fault(100, 5_000, ['w'], 'stop')
  const outage = fault(9_000, 9_500, null, 'restart')
  const echoes = [fault(90, 5_010, ['w'], 'stall'), fault(9_100, 9_200, null, 'slowDatabase')]
  const own = [
    fault(200, 300, ['x'], 'stall'),
    fault(200, 300, null, 'slowDatabase'),
    fault(7_000, 8_000, ['w'], 'stall'),
  ]

  expect(withoutEchoes([stop, outage, ...echoes, ...own])).toEqual([stop, outage, ...own])
})
