import { randomUUID } from 'node:crypto'
import { moveKeyAside } from '../../src/dead-letter/move-aside.ts'
import { createOutbox, type Outbox, systemClock } from '../../src/index.ts'
import { systemIds } from '../../src/runtime/ids.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { ACT, ask, deciding, differences, sightsOf, untilTold } from './operator.ts'
import type { Scene } from './scene.ts'
import { catalogue, events, type SceneEvent, toInput } from './scene-events.ts'
import { asOperation, namingOperations } from './seam-pool.ts'
import { type Process, type Stage, SUBSCRIPTION } from './stage.ts'

const dies = (): readonly SceneEvent[] => events('a', 'dies until mended')
const waits = (n: number) => (): readonly SceneEvent[] => events('a', 'nothing', n, 1)

/** The one that died, and its dead letter. */
interface Dead {
  readonly id: string
  readonly event: SceneEvent
}

async function theDead(stage: Stage): Promise<Dead> {
  const [[id, eventId] = []] = await ask(
    stage,
    'select id::text, event_id from outbox_dead_letter where not resolved',
  )
  const event = stage.owed.find((each) => each.eventId === eventId)
  if (event === undefined) throw new Error('nothing has died')
  return { id: String(id), event }
}

/** Settles one by hand: it stays dead and is never run again, and what waits behind it goes on. */
const resolving = (order: 'none' | 'aggregate'): Scene =>
  deciding({
    name: 'resolve',
    order,
    operations: ['resolveDeadLetter'],
    backlog: [dies, waits(2)],
    ready: theDead,
    act: async (stage, { outbox }, { id, event }) => {
      stage.resolving(event)
      await untilTold(() => outbox.deadLetters.resolve(id, ACT), 'letter-resolved')
    },
    decided: async (stage, { id }) => {
      const rows = await ask(
        stage,
        `select l.resolved_by, d.status, d.held from outbox_dead_letter l join outbox_delivery d on d.id = l.position
          where l.id = $1`,
        [id],
      )
      return differences('the letter and its delivery', rows, [[ACT.operator, 'DEAD', false]])
    },
    afterwards: (stage, { event }) => differences('runs of what was resolved', sightsOf(stage, event), 1),
    log: ['resolve 1'],
  })

/** Puts another payload in the place of a dead one: that one is handled, once, and the original never again. */
const amending = (order: 'none' | 'aggregate'): Scene =>
  deciding({
    name: 'amend',
    order,
    operations: ['findDeadLetter', 'amendDeadLetter'],
    backlog: [dies, waits(2)],
    ready: theDead,
    act: async (stage, process, { id, event }) => {
      const { deadLetters } = standInOutbox(stage, process, event)
      await untilTold(() => deadLetters.amend(id, { seq: 0, does: 'nothing' }, ACT), 'letter-amended')
    },
    decided: async (stage, { event }) => [
      ...differences(
        'payloads: the original, what stands in its place, and in whose delivery',
        await ask(
          stage,
          `select o.payload ->> 'does', e.payload ->> 'does', d.status from outbox_amendment m
             join outbox_event o on o.event_id = m.amended_from
             left join outbox_event e on e.event_id = m.event_id
             left join outbox_delivery d on d.event_id = m.event_id
            where m.amended_from = $1`,
          [event.eventId],
        ),
        [['dies until mended', 'nothing', 'PENDING']],
      ),
      ...differences('events', await ask(stage, 'select count(*)::int from outbox_event'), [[4]]),
    ],
    afterwards: (stage, { event }) =>
      differences('runs, with the one that failed', sightsOf(stage, event), 2),
    log: ['amend 1'],
  })

/** The outbox of a process in which each new event stands for this one. */
function standInOutbox(
  { db: { schema }, standsFor }: Stage,
  { pool }: Process,
  event: SceneEvent,
): Outbox<typeof catalogue, Transaction> {
  const eventId = (): string => {
    const id = randomUUID()
    standsFor.set(id, event)
    return id
  }
  const store = namingOperations(postgresStore({ pool, schema }))
  return createOutbox({ store, events: catalogue, notify: false, ids: { ...systemIds, eventId } })
}

/** The naive form: another event is published, and the dead one resolved afterwards. Whoever repeats it does it twice. */
export const amendingApart: Scene = deciding({
  name: 'amend, in two transactions',
  order: 'none',
  operations: ['publish'],
  backlog: [dies],
  ready: theDead,
  act: async (stage, process, { id, event }) => {
    const outbox = standInOutbox(stage, process, event)
    if ((await outbox.deadLetters.show(id)).resolved) return
    const { eventId: _, ...input } = toInput({ ...event, does: 'nothing' })
    await asOperation('publish', () =>
      outbox.inTransaction(process.pool, (tx) => outbox.publishAll(tx, [input])),
    )
    stage.resolving(event)
    await outbox.deadLetters.resolve(id, ACT)
  },
  decided: async () => [],
  log: ['resolve 1'],
})

/** More than one batch. */
const MANY = 1_001

/** Removes what was decided on long ago, beside a dead letter of the same delivery that is still open. */
const purging: Scene = deciding<null>({
  name: 'purge',
  order: 'none',
  operations: ['purgeDeadLetters'],
  backlog: [dies],
  stir: async (stage, { outbox }) => {
    // It dies again: one letter is decided on, and one is open.
    const { id } = await theDead(stage)
    await outbox.deadLetters.retry(id, { operator: 'a person' })
    await stage.drained()
  },
  ready: async (stage) => {
    const columns = `subscription, subscription_id, lane, position, event_id, stream, event_type, schema_version,
      aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code, error_message,
      retry_count, resolved, resolved_by`
    await ask(
      stage,
      `insert into outbox_dead_letter (${columns}, resolved_at)
       select ${columns}, resolved_at from outbox_dead_letter, generate_series(2, $1) where resolved`,
      [MANY],
    )
    await ask(
      stage,
      `update outbox_dead_letter set resolved_at = resolved_at - interval '2 days' where resolved`,
    )
    return null
  },
  act: (_, { outbox }) => untilTold(() => outbox.deadLetters.purge({ olderThan: '1d' }, ACT)),
  decided: async (stage) =>
    differences('letters that are left', await ask(stage, 'select resolved from outbox_dead_letter'), [
      [false],
    ]),
  log: ['purge 1000', 'purge 1'],
})

interface Blocked {
  readonly key: string
  /** Ends what keeps the last event of the key from being moved. */
  letGo(): Promise<void>
}

/** Moves a blocked key aside in parts, because somebody has one of its events locked. */
const movingAside: Scene = deciding<Blocked>({
  name: 'move aside',
  order: 'aggregate',
  operations: ['moveAside, part 1', 'moveAside, part 2', 'moveAside, part 3'],
  backlog: [dies, waits(2)],
  ready: async (stage) => {
    const [[key] = []] = await ask(stage, 'select ordering_key from outbox_dead_letter')
    const last = stage.owed.at(-1)?.eventId
    const client = await stage.db.pool.connect()
    await client.query('begin')
    await client.query('select 1 from outbox_delivery where event_id = $1 for update', [last])
    let gone: Promise<void> | null = null
    const letGo = (): Promise<void> => {
      gone ??= client.query('commit').then(() => client.release())
      return gone
    }
    return { key: String(key), letGo }
  },
  act: async ({ db: { schema } }, { pool }, blocked) => {
    const store = postgresStore({ pool, schema })
    let parts = 0
    // A part is called by how many went before it: the second finds nothing that it can move.
    const moveAside: typeof store.moveAside = (...args) => {
      parts += 1
      return asOperation(`moveAside, part ${parts}`, () => store.moveAside(...args))
    }
    // What it waits for happens while it waits.
    const clock = { ...systemClock, sleep: () => blocked.letGo() }
    await untilTold(
      () => moveKeyAside({ moveAside }, clock, SUBSCRIPTION, blocked.key, ACT),
      'key-not-blocked',
    )
  },
  decided: async (stage) =>
    differences(
      'open letters, by position',
      await ask(
        stage,
        `select l.reason, d.status, d.held from outbox_dead_letter l join outbox_delivery d on d.id = l.position
          where not l.resolved order by l.position`,
      ),
      [
        ['NON_RETRYABLE', 'DEAD', false],
        ['MOVED_ASIDE', 'DEAD', false],
        ['MOVED_ASIDE', 'DEAD', false],
      ],
    ),
  log: ['move-aside 1', 'move-aside 1'],
})

export const operatorScenes: readonly Scene[] = [
  resolving('none'),
  resolving('aggregate'),
  amending('none'),
  amending('aggregate'),
  purging,
  movingAside,
]
