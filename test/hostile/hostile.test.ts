import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CommitpostError } from '../../src/index.ts'
import { expectKorean } from '../cli/korean.ts'
import { runCli } from '../cli/support.ts'
import { groups } from './groups.ts'
import { expectToldInKorean, saidByUs } from './in-korean.ts'
import { type CliRefusal, type Refusal, type Row, type SqlRefusal, titleOf } from './row.ts'
import { createScene, type Scene } from './scene.ts'
import type { Snapshot } from './snapshot.ts'

let scene: Scene
let directory: string

const CONFIGS = {
  'empty.mjs': 'export const nothing = 1',
  'broken.mjs': 'export default {',
  'throws.mjs': 'throw null',
  'typed.ts': 'enum Kind { A }\nexport default { kind: Kind.A }',
}

beforeAll(async () => {
  scene = await createScene()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-hostile-'))
  for (const [name, text] of Object.entries(CONFIGS)) await writeFile(join(directory, name), text)
})

afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
  await scene[Symbol.asyncDispose]()
})

async function thrownBy(run: () => unknown): Promise<unknown> {
  try {
    await run()
  } catch (error) {
    return error
  }
  throw new Error('It was not refused.')
}

/** What the tables hold since the last input; null where that one may have changed it. */
let held: Snapshot | null = null

async function changesNothing(run: () => Promise<void>): Promise<void> {
  const before = held ?? (await scene.snapshot())
  held = null
  await run()
  held = await scene.snapshot()
  expect(held).toEqual(before)
}

async function provesRefusal(row: Refusal): Promise<void> {
  const error = await thrownBy(() => row.run(scene))
  expect(error).toBeInstanceOf(CommitpostError)
  expect((error as CommitpostError).message).toContain(row.says)
  expect((error as CommitpostError).code).toBe(row.code)
  expectToldInKorean(error as CommitpostError)
}

async function provesSqlRefusal(row: SqlRefusal): Promise<void> {
  const error = await thrownBy(() => row.run(scene))
  expect(error).toMatchObject({ code: row.sqlState, message: expect.stringContaining(row.says) })
}

async function provesCliRefusal(row: CliRefusal): Promise<void> {
  const args = row.args.map((word) => word.replace('SCHEMA', scene.schema).replace('DATABASE', scene.url))
  const { code, stdout, stderr } = await runCli(args, {
    cwd: directory,
    ...(row.env ? { env: row.env } : {}),
  })
  expect(stderr).toContain(`Error (${row.code})`)
  expect(stderr).toContain(row.says)
  expect(code).toBe(row.exit)
  expect(stdout + stderr).not.toMatch(/s3cret|TypeError|\n {4}at /)
  const korean = await runCli(args, { cwd: directory, env: { ...row.env, LANG: 'ko_KR.UTF-8' } })
  expect(korean.code).toBe(row.exit)
  expectKorean(saidByUs(korean.stderr))
}

function prove(row: Row): Promise<void> {
  switch (row.kind) {
    case 'refused':
      return changesNothing(() => provesRefusal(row))
    case 'sql':
      return changesNothing(() => provesSqlRefusal(row))
    case 'cli':
      return changesNothing(() => provesCliRefusal(row))
    case 'borne':
      held = null
      return row.run(scene).then((result) => expect(result).toEqual(row.expected))
    default:
      return row satisfies never
  }
}

for (const { title, rows } of groups) {
  describe(title, () => {
    test.each(rows.map((row) => [titleOf(row).slice(0, 120), row] as const))('%s', (_, row) => prove(row))
  })
}
