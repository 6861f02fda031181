import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually } from '../support/program.ts'
import { workerMember } from './fleet.ts'
import { openJournal } from './journal.ts'
import { comesToRest, isOver, within } from './within.ts'

const NEVER = new Promise<never>(() => undefined)

test('a step that never ends is named, and one that fails is thrown', async () => {
  await within(60_000, 'this', Promise.resolve())
  await expect(within(20, 'the proxies close', NEVER)).rejects.toThrow(
    'Waited 20 ms in vain: the proxies close',
  )
  await expect(within(20, () => 'over with a, b', NEVER)).rejects.toThrow('over with a, b')
  await expect(isOver(Promise.reject(new Error('broken')), 60_000)).rejects.toThrow('broken')
})

test('rest is waited for while less and less waits, and not once it stays the same', async () => {
  let left = 6
  const slow = (): number => {
    left -= 1
    return left
  }
  // Longer than anybody would wait for one step of it.
  expect(await comesToRest(slow, 60)).toBe(true)
  expect(await comesToRest(() => 3, 60)).toBe(false)
  expect(await comesToRest(() => null, 60)).toBe(false)
})

test('a worker that does not stop is killed, and that counts as a crash', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-deaf-'))
  const journal = openJournal(directory, 'nemesis')
  await mkdir(join(directory, 'test', 'programs'), { recursive: true })
  await writeFile(
    join(directory, 'test', 'programs', 'chaos-worker.js'),
    `process.on('SIGTERM', () => undefined)
     process.stdin.resume()
     console.log(JSON.stringify({ count: 1 }))`,
  )
  const worker = await workerMember('w0', {
    programs: directory,
    databaseUrl: 'postgres://nobody@127.0.0.1:1/none',
    schema: 'none',
    journals: directory,
    journal,
    leaseMs: 1_000,
    seed: 1,
    faketime: null,
    patienceMs: 50,
  })
  worker.start()
  await eventually('it listens', () => worker.count === 1)

  await worker.stop()

  expect(worker.unexpected).toEqual(['w0.1 did not stop within 50 ms'])
  await worker.proxy.close()
  journal.close()
  await rm(directory, { recursive: true })
})
