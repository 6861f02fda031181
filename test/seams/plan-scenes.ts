import type { RedrivingStore } from '../../src/dead-letter/apply-plan.ts'
import { createRedrive, type Redrive } from '../../src/dead-letter/redrive.ts'
import { systemClock } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { ACT, ask, deciding, differences, disagreements, logFaults, untilTold } from './operator.ts'
import type { Scene } from './scene.ts'
import { events } from './scene-events.ts'
import { asOperation, namingOperations } from './seam-pool.ts'
import type { Process, Stage } from './stage.ts'

/** The plan that an operator was told of. Who was not told of one makes another. */
const told = new WeakMap<Stage, string>()
const found = new WeakMap<Stage, readonly string[]>()

/** Plans and applies it letter by letter, while the worker of another process handles what is sent. */
const applying: Scene = {
  name: 'redrive by plan',
  subscription: { order: 'aggregate' },
  operations: [
    'planRedrive',
    'beginRedrive',
    'stepRedrive, after 0',
    'stepRedrive, after 1',
    'stepRedrive, after 2',
    'notifyWorkers',
    'redriveProgress',
  ],
  prepare: async (stage) => {
    await stage.subscribe()
    await stage.publish(
      events('a', 'dies until mended'),
      events('a', 'nothing', 1, 1),
      events('b', 'dies until mended'),
    )
    await stage.process('worker').start()
    await stage.drained()
    stage.mend()
  },
  live: async (stage, process) => {
    await applyOne(stage, redriveOf(stage, process))
  },
  rescue: async (stage, process) => {
    const redrive = redriveOf(stage, process)
    const applied = await applyOne(stage, redrive)
    // A plan of which nobody was told may be found by somebody else, who applies it too: nothing is sent twice.
    const others = await ask(stage, 'select id::text from outbox_redrive_plan where id <> $1', [applied])
    for (const [id] of others) await redrive.apply(String(id), ACT)
    found.set(stage, [...(await planFaults(stage)), ...(await disagreements(stage))])
  },
  inspect: async (stage) => [
    ...(found.get(stage) ?? ['it was never applied again']),
    ...(await logFaults(stage, ['retry 1', 'redrive 1', 'retry 1', 'redrive 1'])),
  ],
}

/** Applies the plan that is known, or makes one. Returns its id. */
async function applyOne(stage: Stage, redrive: Redrive): Promise<string> {
  if (!told.has(stage)) {
    await untilTold(async () => {
      const { id } = await redrive.plan()
      told.set(stage, id)
    })
  }
  const id = told.get(stage) as string
  await untilTold(() => redrive.apply(id, { ...ACT, atOnce: 1, ratePerSecond: null }))
  return id
}

/**
 * The operator's side of re-driving. A step is called by how many were sent before it, and the operator's pauses last
 * until what was sent has ended: there are as many steps in every run.
 */
function redriveOf(stage: Stage, { pool }: Process): Redrive {
  const store = postgresStore({ pool, schema: stage.db.schema })
  const named = namingOperations(store)
  let driven = 0
  const stepwise: RedrivingStore = {
    planRedrive: (filter) => named.planRedrive(filter),
    beginRedrive: (...args) => named.beginRedrive(...args),
    stepRedrive: async (...args) => {
      const step = await asOperation(`stepRedrive, after ${driven}`, () => store.stepRedrive(...args))
      driven += step.driven
      return step
    },
    redriveProgress: (id) => named.redriveProgress(id),
    cancelRedrive: (...args) => named.cancelRedrive(...args),
    moveAside: (...args) => named.moveAside(...args),
    notifyWorkers: () => named.notifyWorkers(),
  }
  return createRedrive(stepwise, { ...systemClock, sleep: () => stage.drained() })
}

/** All plans are done, and together they sent each letter once. */
async function planFaults(stage: Stage): Promise<readonly string[]> {
  const plans = await ask(
    stage,
    'select bool_and(state = $1), sum(driven)::int, sum(succeeded)::int from outbox_redrive_plan',
    ['done'],
  )
  const letters = await ask(stage, 'select resolved, resolved_by from outbox_dead_letter')
  return [
    ...differences('plans: done, driven, succeeded', plans, [[true, 2, 2]]),
    ...differences('letters', letters, [
      [true, ACT.operator],
      [true, ACT.operator],
    ]),
  ]
}

/** Ends a plan that was begun: nothing of it is sent, whoever applies it afterwards. */
const cancelling: Scene = deciding<string>({
  name: 'cancel a plan',
  order: 'none',
  operations: ['cancelRedrive'],
  backlog: [() => events('a', 'dies until mended'), () => events('b', 'dies until mended')],
  ready: async (stage) => {
    const store = postgresStore({ pool: stage.db.pool, schema: stage.db.schema })
    const { id } = await store.planRedrive({})
    const settings = {
      ratePerSecond: null,
      atOnce: 1,
      stopWhenFailedShare: null,
      minSample: 1,
      resume: false,
    }
    await store.beginRedrive(id, 'a person', settings)
    return id
  },
  act: (_, { outbox }, id) => untilTold(() => outbox.redrive.cancel(id, ACT)),
  decided: async (stage, id) => {
    const redrive = createRedrive(
      postgresStore({ pool: stage.db.pool, schema: stage.db.schema }),
      systemClock,
    )
    await untilTold(() => redrive.apply(id, ACT), 'plan-cancelled')
    const plans = await ask(stage, 'select state, driven from outbox_redrive_plan')
    const open = await ask(stage, 'select count(*)::int from outbox_dead_letter where not resolved')
    return [
      ...differences('the plan', plans, [['cancelled', 0]]),
      ...differences('open letters', open, [[2]]),
    ]
  },
  log: ['redrive-cancel 2'],
})

export const planScenes: readonly Scene[] = [applying, cancelling]
