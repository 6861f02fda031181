import { rm } from 'node:fs/promises'
import { startEmbeddedPostgres } from '../../src/testing/index.ts'
import { directoryInMemory } from './memory-directory.ts'
import { PATIENCE_MS } from './patience-ms.ts'
import { makeTemplate } from './template-database.ts'

/** A server for tests, and a database of it with the outbox's tables, to be copied. */
export interface TestServer extends AsyncDisposable {
  readonly url: string
  readonly template: string
}

/** How the servers of tests run. */
export const TEST_SERVER = {
  startTimeoutMs: PATIENCE_MS,
  fsync: false,
  settings: {
    max_connections: 200,
    synchronous_commit: 'on',
    // Reading them takes a tenth of the time in which the tables are made. function-bodies.test.ts has them read.
    check_function_bodies: false,
  },
} as const

/**
 * A server of a file's own, for what waits for every older transaction of its server: on the one that all tests share those
 * may be of any other test.
 */
export async function startTestServer(): Promise<TestServer> {
  const dataDir = await directoryInMemory()
  const server = await startEmbeddedPostgres({
    ...TEST_SERVER,
    ...(dataDir === undefined ? {} : { dataDir }),
  })
  return {
    url: server.url,
    template: await makeTemplate(server.url),
    async [Symbol.asyncDispose]() {
      await server.stop()
      if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}
