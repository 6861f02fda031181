import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, makeDeadLetter, runCli } from './support.ts'

/** Before each test of the file that calls it: tables with one dead letter, and an empty directory to run in. */
export function useLetterScene(): LetterScene {
  const scene = new LetterScene()
  beforeEach(() => scene.open())
  afterEach(() => scene.close())
  return scene
}

class LetterScene {
  database!: TestDatabase
  directory!: string
  /** That of the dead letter. */
  id!: string

  async open(): Promise<void> {
    this.database = await createTestDatabaseWithTables()
    this.directory = await mkdtemp(join(tmpdir(), 'commitpost-letters-'))
    this.id = await makeDeadLetter(this.database)
  }

  async close(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true })
    await this.database.drop()
  }

  readonly cli = (...args: readonly string[]): ReturnType<typeof runCli> =>
    runCli([...args, ...at(this.database)], { cwd: this.directory })

  readonly json = async <Value>(...args: readonly string[]): Promise<Value> => {
    const { code, stdout, stderr } = await this.cli(...args, '--json')
    expect({ code, stderr: stderr.includes('"error"') ? stderr : '' }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout) as Value
  }

  readonly rows = async (sql: string): Promise<unknown[]> => (await this.database.pool.query(sql)).rows

  /** A config whose catalogue wants a text in the payload, and hides it. */
  readonly writeConfig = (): Promise<void> => writeFile(join(this.directory, 'config.mjs'), CONFIG)
}

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(compiledDirectory, path)).href)

const CONFIG = `
    import { createOutbox } from ${compiled('src/outbox.js')}
    import { defineEvents } from ${compiled('src/event/define-events.js')}
    import { postgresStore } from ${compiled('src/store/postgres/postgres-store.js')}
    const validate = (value) =>
      typeof value?.text === 'string' ? { value } : { issues: [{ message: 'must be text', path: ['text'] }] }
    const schema = { '~standard': { version: 1, vendor: 'test', validate } }
    const events = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema, sensitive: ['text'] } })
    const outbox = createOutbox({ store: postgresStore({ pool: { connect() {} } }), events })
    export default { outbox, subscriptions: [outbox.subscription('mailer', { on: { OrderPlaced() {} } })] }`
