import { defineConfig } from 'vitest/config'

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

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'plain', include: ['test/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'partitioned',
          include: IN_BOTH_LAYOUTS,
          env: { COMMITPOST_TEST_TABLES: 'partitioned' },
        },
      },
    ],
    testTimeout: 180_000,
    hookTimeout: 120_000,
    slowTestThreshold: 5_000,
    pool: 'forks',
  },
})
