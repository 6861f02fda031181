import { eventually } from '../support/program.ts'
import { publishingScenes, registering, widening } from './caller-scenes.ts'
import { exporting } from './export-scene.ts'
import { ask, differences, sightsOf } from './operator.ts'
import { operatorScenes } from './operator-scenes.ts'
import { planScenes } from './plan-scenes.ts'
import { retaining } from './retain-scene.ts'
import type { Scene } from './scene.ts'
import { events, type SceneEvent } from './scene-events.ts'
import { POLICY, type Process, type Stage } from './stage.ts'

const nothing = async (): Promise<void> => {}
const noFaults = async (): Promise<readonly string[]> => []

type Parts = Pick<Scene, 'name' | 'operations'> & Partial<Scene>

/** A worker that finds something to do. */
function working(order: 'none' | 'aggregate', parts: Parts, backlog: (stage: Stage) => Promise<void>): Scene {
  return {
    subscription: { order },
    prepare: async (stage) => {
      await stage.subscribe()
      await backlog(stage)
    },
    live: async (stage, process) => {
      await process.start()
      await stage.drained()
    },
    rescue: nothing,
    inspect: noFaults,
    ...parts,
    name: `${parts.name}, ${order === 'none' ? 'unordered' : 'ordered'}`,
  }
}

const START = [
  'assertReady',
  'register',
  'heartbeat',
  'advanceJoining',
  'recover',
  'takeUnmatched',
  'forgetWorkers',
  'tendPartitions',
]

/** The second statement of a claim that found something held, or locked in that moment. */
const LONG_WAY = 'claimLanes: update outbox_delivery + insert into outbox_lease'
const SHORT_WAY = 'claimLanes: insert into outbox_lease + update outbox_delivery'

const claiming = (order: 'none' | 'aggregate'): Scene => {
  const claims = order === 'none' ? ['claim'] : ['takeLanes', 'claimLanes']
  const [claim] = claims.slice(-1)
  return working(
    order,
    {
      name: 'claim',
      operations: [...(order === 'none' ? START : []), ...claims, 'claimSuspects', 'markAlone'],
      elsewhere: [LONG_WAY],
      live: async (stage, process) => {
        await process.start()
        await stage.drained()
        const decided = `${claim}: select from outbox_delivery`
        await eventually('the low-water bound has moved', () => process.pool.seams.has(decided))
      },
    },
    async (stage) => {
      const left = events('a', 'nothing')
      await stage.publish(left, events('a', 'nothing', 2, 1), events('b', 'nothing', 2))
      await stage.leaveBehind(left)
    },
  )
}

/** A worker that does not learn what a claim has taken, and asks for it back. */
const renewing: Scene = working(
  'aggregate',
  {
    name: 'claim without an answer',
    operations: ['renewLanes'],
    live: async (stage, process) => {
      void process.pool.trap(SHORT_WAY, 'outcome-unknown', nothing)
      await process.start()
      await stage.drained()
    },
  },
  (stage) => stage.publish(events('a', 'nothing', 3), events('b', 'nothing', 3)),
)

/** A claim that finds something held: it goes the long way, and parks what stands behind. */
const parking: Scene = working(
  'aggregate',
  {
    name: 'claim behind a retry',
    operations: ['claimLanes'],
    live: async (stage, process) => {
      await process.start()
      await eventually('a claim has gone the long way', () => process.pool.seams.has(LONG_WAY))
      await stage.drained()
    },
  },
  async (stage) => {
    const [first, ...behind] = events('a', 'nothing', 2)
    if (first === undefined) throw new Error('there is no first event')
    await stage.publish([first], behind)
    // For longer than the scene lasts: `drained` cuts it short.
    await stage.db.pool.query(
      `update outbox_delivery set fresh = false, held = true, next_retry_at = now() + interval '1 hour' where event_id = $1`,
      [first.eventId],
    )
  },
)

const dispatching = (order: 'none' | 'aggregate'): Scene =>
  working(order, { name: 'dispatch', operations: ['dispatch once', 'dispatch complete'] }, (stage) =>
    stage.publish(events('a', 'once'), events('b', 'completes'), events('a', 'nothing', 1, 1)),
  )

const settling = (order: 'none' | 'aggregate'): Scene =>
  working(
    order,
    { name: 'settle', operations: order === 'none' ? ['settle'] : ['settle', 'unpark'] },
    (stage) => stage.publish(events('a', 'fails once'), events('a', 'nothing', 2, 1), events('b', 'nothing')),
  )

const dying = (order: 'none' | 'aggregate'): Scene =>
  working(order, { name: 'dead letter', operations: ['settle'] }, (stage) =>
    stage.publish(events('a', 'dies until mended'), events('a', 'nothing', 2, 1), events('b', 'nothing')),
  )

const crashed = (order: 'none' | 'aggregate'): Scene =>
  working(
    order,
    {
      name: 'dead letter of one that killed its worker',
      operations: order === 'none' ? ['recover'] : ['takeLanes'],
    },
    async (stage) => {
      const killer = events('a', 'nothing')
      await stage.publish(killer, events('a', 'nothing', 1, 1))
      await stage.leaveBehind(killer, true)
    },
  )

const redriving = (order: 'none' | 'aggregate'): Scene =>
  working(
    order,
    {
      name: 'redrive',
      operations: ['listDeadLetters', 'retryDeadLetter'],
      live: async (stage, process) => {
        await process.start()
        await stage.drained()
        stage.mend()
        await retryAll(process)
        await stage.drained()
      },
    },
    (stage) => stage.publish(events('a', 'dies until mended'), events('a', 'nothing', 2, 1)),
  )

/** A worker whose policy names what another worker's handler failed with, before it was mended. */
const byPolicy: Scene = working(
  'none',
  {
    name: 'redrive by policy',
    subscription: { order: 'none', hasPolicy: true },
    operations: ['redriveByPolicy'],
    live: redriven,
    rescue: redriven,
    inspect: async (stage) => [
      ...differences('letters', await ask(stage, 'select resolved, resolved_by from outbox_dead_letter'), [
        [true, `policy:${POLICY.name}`],
      ]),
      ...differences(
        'the log says',
        await ask(stage, `select operator, action, affected from outbox_operator_log order by id`),
        [[`policy:${POLICY.name}`, 'retry', 1]],
      ),
      ...differences('runs, with the one that failed', sightsOf(stage, stage.owed[0] as SceneEvent), 2),
    ],
  },
  async (stage) => {
    await stage.publish(events('a', 'dies until mended'), events('b', 'nothing'))
    const before = stage.process('before')
    await before.start()
    await stage.drained()
    await before.worker.stop()
    stage.mend()
  },
)

async function redriven(stage: Stage, process: Process): Promise<void> {
  await process.start()
  await eventually('the policy has sent on what died', async () => {
    const open = await ask(stage, 'select 1 from outbox_dead_letter where not resolved')
    return open.length === 0
  })
  await stage.drained()
}

/** An operator who was not told how it went looks again: what is resolved is no longer in the list. */
async function retryAll({ outbox }: Process): Promise<void> {
  const letters = await outbox.deadLetters.list().catch(() => outbox.deadLetters.list())
  for (const { id } of letters) {
    await outbox.deadLetters.retry(id, { operator: 'a person' }).catch(() => undefined)
  }
  const rest = await outbox.deadLetters.list()
  for (const { id } of rest) await outbox.deadLetters.retry(id, { operator: 'a person' })
}

const stopping: Scene = working(
  'aggregate',
  {
    name: 'stop',
    operations: ['settle', 'releaseLanes', 'leave'],
    live: async (stage, process) => {
      let go = (): void => undefined
      const open = new Promise<void>((resolve) => {
        go = resolve
      })
      const begun = new Promise<void>((resolve) => {
        stage.gate = { begun: resolve, open }
      })
      await process.start()
      await begun
      const stopped = process.worker.stop()
      go()
      await stopped
    },
  },
  (stage) => stage.publish(events('a', 'nothing', 3)),
)

export const scenes: readonly Scene[] = [
  ...publishingScenes,
  claiming('none'),
  claiming('aggregate'),
  renewing,
  parking,
  dispatching('none'),
  dispatching('aggregate'),
  settling('none'),
  settling('aggregate'),
  dying('none'),
  dying('aggregate'),
  crashed('none'),
  crashed('aggregate'),
  redriving('none'),
  redriving('aggregate'),
  byPolicy,
  ...operatorScenes,
  ...planScenes,
  retaining,
  exporting,
  registering('now'),
  registering('beginning'),
  widening('first'),
  widening('second'),
  stopping,
]
