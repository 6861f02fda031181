import { defineConfig } from 'vitest/config'
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
]

/** What needs no server and leaves nothing behind in its process: the next of these files goes on in the same one. */
const PURE = ['delivery', 'dispatch', 'event', 'kafka', 'queue', 'settle'].map(
  (folder) => `test/${folder}/**/!(*-postgres).test.ts`,
)

const forAll = {
  testTimeout: 180_000,
  hookTimeout: 120_000,
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
      { test: { ...forAll, name: 'plain', include: ['test/**/*.test.ts'], exclude: PURE } },
      { test: { ...forAll, name: 'pure', include: PURE, isolate: false } },
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
