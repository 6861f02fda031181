import { defineConfig } from 'vitest/config'
import { TEST_MS } from './test/support/patience-ms.ts'
import { SlowFirst } from './test/support/slow-first.ts'

/** What must hold in the partitioned layout as it does in the plain one: run a second time on partitioned tables. */
const IN_BOTH_LAYOUTS = [
  'test/store/postgres/contract.test.ts',
  'test/store/postgres/retention.test.ts',
  'test/hazards/claim-limits.test.ts',
  'test/hazards/done-rows.test.ts',
  'test/store/postgres/dead-letters.test.ts',
  'test/hazards/retention.test.ts',
  'test/hazards/removed-rows.test.ts',
  'test/worker/worker-postgres.test.ts',
  'test/worker/lanes-postgres.test.ts',
  'test/acceptance/retention.test.ts',
  'test/support/template-database.test.ts',
]

/**
 * What leaves nothing behind in its process: the next of these files goes on in the same one, and need not load everything
 * again. Not where workers run: those of a process know of each other, and a handler that never ends is with them for good.
 * Nor where a test changes the process itself.
 */
const SHARING = [
  'alert',
  'cli',
  'delivery',
  'dispatch',
  'docs',
  'event',
  'inspect',
  'kafka',
  'observe',
  'publish',
  'queue',
  'retain',
  'runtime',
  'settle',
  'store/postgres',
].map((folder) => `test/${folder}/**/*.test.ts`)

const forAll = {
  testTimeout: TEST_MS,
  hookTimeout: TEST_MS,
  pool: 'forks',
} as const

export default defineConfig({
  test: {
    // Of the run and not of its projects, which would each compile everything and start a server of its own.
    globalSetup: ['test/support/global-setup.ts'],
    // One more than CI has cores: a good part of the files mostly waits, for leases and for servers that start.
    maxWorkers: 3,
    slowTestThreshold: 5_000,
    sequence: { sequencer: SlowFirst },
    projects: [
      { test: { ...forAll, name: 'plain', include: ['test/**/*.test.ts'], exclude: SHARING } },
      { test: { ...forAll, name: 'sharing', include: SHARING, isolate: false } },
      {
        test: {
          ...forAll,
          name: 'partitioned',
          include: IN_BOTH_LAYOUTS,
          env: { COMMITPOST_TEST_TABLES: 'partitioned' },
        },
      },
    ],
  },
})
