import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that take long, although some of them are short. Those that mostly wait, for servers that start or leases that
 * lapse, stand between those that keep the processor busy: three files run at a time.
 */
const SLOW = [
  'test/seams/seams.test.ts',
  'test/acceptance/mariadb-debezium.test.ts',
  'test/acceptance/ivm-debezium.test.ts',
  'test/acceptance/kafka-cluster.test.ts',
  'test/hostile/hostile.test.ts',
  'test/infra/setup-local.test.ts',
  'test/sabotage/sabotage.test.ts',
  'test/chaos/chaos.test.ts',
  'test/acceptance/same-handlers.test.ts',
  'test/store/property/deliveries.property.test.ts',
  'test/acceptance/kafka-faults.test.ts',
  'test/acceptance/kafka-consumer.test.ts',
  'test/acceptance/kafka-relay.test.ts',
  'test/acceptance/kafka-bus.test.ts',
  'test/testing/kafka-server.test.ts',
  'test/hazards/kafka-lost-count.test.ts',
  'test/crash/kill.test.ts',
  'test/crash/rolling-deploy.test.ts',
  'test/crash/stream.test.ts',
  'test/crash/poison.test.ts',
  'test/hazards/frozen-plan.test.ts',
  'test/worker/ordered-simulation.test.ts',
  'test/acceptance/partitions.test.ts',
  'test/stream/failover.test.ts',
  'test/stream/slow.test.ts',
]

/**
 * Starts the slow files first, and of the others those that share a process last and together: it is left as soon as a
 * file of another project is next. Apart from that as usual, larger ones before smaller ones.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- that of the sequencer, which returns a new list
    const usual = await super.sort(files)
    return usual.toSorted((one, other) => this.#rank(one) - this.#rank(other))
  }

  #rank({ moduleId, project }: TestSpecification): number {
    const place = SLOW.indexOf(relative(this.ctx.config.root, moduleId))
    if (place >= 0) return place
    return project.config.isolate ? SLOW.length : SLOW.length + 1
  }
}
