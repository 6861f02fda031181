import {
  createOutbox,
  defineEvents,
  NonRetryableError,
  type Outbox,
  type RetentionOptions,
  type RetentionPolicy,
  type Subscription,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { openSystem, type System } from './support.ts'

/** Events of a member, whose e-mail address is nobody's business in an archive. */
export const memberEvents = defineEvents({
  MemberJoined: {
    stream: 'umbra.member',
    aggregate: 'member',
    schema: unchecked<{ name: string; email: string }>(),
    sensitive: ['email'],
  },
  PaymentSucceeded: { stream: 'umbra.billing', aggregate: 'subscription', schema: unchecked<object>() },
})

export type MemberEvents = typeof memberEvents

/** A system whose events are older than they would be, and outboxes over it that let them go. */
export class RetentionSystem implements AsyncDisposable {
  readonly system: System<MemberEvents>
  #published = 0

  constructor(system: System<MemberEvents>) {
    this.system = system
  }

  /** An outbox with these policies, with connections of its own: as another process would have it. */
  withPolicies(
    policies: readonly RetentionPolicy[],
    options: Partial<RetentionOptions & { metrics: never }> = {},
  ): Outbox<MemberEvents, Transaction> {
    const { metrics, ...paced } = options
    return createOutbox({
      store: postgresStore({ pool: this.system.newPool(), schema: this.system.schema }),
      events: memberEvents,
      retention: { policies, pauseMs: 0, share: 1, ...paced },
      ...(metrics === undefined ? {} : { metrics }),
    })
  }

  /** To the archive after 30 days: in the schema of the test, in the place of `audit`. */
  archiving(overrides: Partial<RetentionPolicy> = {}): RetentionPolicy {
    return {
      name: 'audit',
      stream: 'umbra.*',
      keepDays: 30,
      action: 'archive',
      archive: { schema: this.system.schema, table: 'events' },
      ...overrides,
    }
  }

  /** Publishes members that joined long ago. Returns their ids. */
  async join(...names: readonly string[]): Promise<readonly string[]> {
    const ids: string[] = []
    for (const name of names) {
      this.#published += 1
      const eventId = `01900000-0000-7000-8000-${String(this.#published).padStart(12, '0')}`
      const payload = { name, email: `${name}@example.com` }
      ids.push(await this.system.publish('MemberJoined', { aggregateId: name, eventId, payload }))
    }
    return ids
  }

  /** A subscription that fails for good for whoever is called nobody. */
  greeter(): Subscription<MemberEvents, Transaction> {
    return this.system.outbox.subscription('greeter', {
      on: {
        MemberJoined: ({ payload: { name } }) => {
          if (name === 'nobody') throw new NonRetryableError('there is no such person')
        },
      },
    })
  }

  /** Publishes and delivers, and lets all of it be so many days old. */
  async handled(days: number, ...names: readonly string[]): Promise<readonly string[]> {
    const ids = await this.join(...names)
    await this.system.untilSettled()
    await this.age(days, ids)
    return ids
  }

  /** Lets time pass for these events and what became of them, as only a superuser can. */
  async age(days: number, eventIds: readonly string[]): Promise<void> {
    const client = await this.system.pool.connect()
    const back = `- $1 * interval '1 day'`
    try {
      await client.query('begin; set local session_replication_role = replica')
      const values = [days, eventIds]
      await client.query(
        `update outbox_event set created_at = created_at ${back} where event_id = any ($2)`,
        values,
      )
      await client.query(
        `update outbox_delivery set processed_at = processed_at ${back}, updated_at = updated_at ${back}
          where event_id = any ($2)`,
        values,
      )
      await client.query('commit')
    } finally {
      client.release()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system[Symbol.asyncDispose]()
  }
}

export const openRetention = async (): Promise<RetentionSystem> =>
  new RetentionSystem(await openSystem(memberEvents))
