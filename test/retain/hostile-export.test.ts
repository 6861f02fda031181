import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { verifyExportFiles } from '../../src/index.ts'
import { changeFile, openScene, payments, type Scene, sha256 } from './support.ts'

const FILE = 'events-000001.ndjson.gz'
const MIB = 1024 * 1024

let scene: Scene
let directory: string

beforeEach(async () => {
  scene = await openScene()
  await scene.pay(2)
  directory = (await scene.outbox.exports.run(payments(scene)))?.location ?? ''
})
afterEach(async () => {
  await scene[Symbol.asyncDispose]()
})

/** Puts something in the place of the file, so that its bytes fit. */
async function forge(content: Buffer): Promise<void> {
  const bytes = gzipSync(content, { level: 1 })
  await writeFile(join(directory, FILE), bytes)
  await changeFile(directory, FILE, { bytes: bytes.length, sha256: sha256(bytes) })
}

const problem = async (): Promise<unknown> => (await verifyExportFiles(directory)).problem

test('of what decompresses to more than the manifest says, no more is read', async () => {
  await forge(Buffer.alloc(64 * MIB, '\n'))
  expect(await problem()).toMatchObject({ kind: 'wrong-content', file: FILE })
})

test('of a file with more events than the manifest says, no more are kept', async () => {
  const content = Buffer.from('{"eventId":"e"}\n'.repeat(3))
  await forge(content)
  await changeFile(directory, FILE, { contentBytes: content.length, contentSha256: sha256(content) })
  expect(await problem()).toMatchObject({ kind: 'wrong-content', file: FILE })
})

test('a manifest of more events than a file can have is none', async () => {
  await changeFile(directory, FILE, { events: 1_000_001 })
  expect(await problem()).toMatchObject({ kind: 'manifest-unknown' })
})

test('a device without an end is no file of an export', async () => {
  await rm(join(directory, FILE))
  await symlink('/dev/zero', join(directory, FILE))
  expect(await problem()).toEqual({ kind: 'changed-file', file: FILE, detail: 'it is no file' })
})

test('nor is a directory', async () => {
  await rm(join(directory, FILE))
  await mkdir(join(directory, FILE))
  expect(await problem()).toEqual({ kind: 'changed-file', file: FILE, detail: 'it is no file' })
})
