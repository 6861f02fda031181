import { CommitpostError, createOutbox, RefusedError } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Scene } from './scene.ts'
import { catalogue, type SceneEvent } from './scene-events.ts'
import type { Process, Stage } from './stage.ts'

/** In the name of whom a scene acts. What a person does once the scene is over is another's. */
export const ACT = { operator: 'an operator' } as const

/** What an operator decides on in a scene, and how that is told to be right. */
export interface Decision<State> extends Pick<Scene, 'name' | 'operations'> {
  readonly order: 'none' | 'aggregate'
  readonly backlog: readonly (() => readonly SceneEvent[])[]
  /** What happens before, while a worker still runs. */
  stir?(stage: Stage, before: Process): Promise<void>
  /** Looks at what there is to decide on. No worker runs any more. */
  ready(stage: Stage): Promise<State>
  /** Decides, as often as it takes to be told that it is done. */
  act(stage: Stage, process: Process, state: State): Promise<void>
  /** Names what is wrong once it was decided and decided again, and nobody has gone on from there. */
  decided(stage: Stage, state: State): Promise<readonly string[]>
  /** Names what is wrong when everybody has gone on. */
  afterwards?(stage: Stage, state: State): readonly string[]
  /** Everything that the operator's log says of it: each act and how many it concerned, in their order. */
  readonly log: readonly string[]
}

/** An operator without a worker decides; the next one, who cannot know, does the same again. */
export function deciding<State>(decision: Decision<State>): Scene {
  const states = new WeakMap<Stage, State>()
  const found = new WeakMap<Stage, readonly string[]>()
  const { order, name, operations } = decision
  const stateOf = (stage: Stage): State => states.get(stage) as State
  return {
    name: `${name}, ${order === 'none' ? 'unordered' : 'ordered'}`,
    subscription: { order },
    operations,
    prepare: async (stage) => {
      await stage.subscribe()
      await stage.publish(...decision.backlog.map((batch) => batch()))
      const before = stage.process('before')
      await before.start()
      await stage.drained()
      await decision.stir?.(stage, before)
      await before.worker.stop()
      states.set(stage, await decision.ready(stage))
    },
    live: (stage, process) => decision.act(stage, process, stateOf(stage)),
    rescue: async (stage, process) => {
      await decision.act(stage, process, stateOf(stage))
      found.set(stage, [...(await decision.decided(stage, stateOf(stage))), ...(await disagreements(stage))])
    },
    inspect: async (stage) => [
      ...(found.get(stage) ?? ['it was never decided again']),
      ...(decision.afterwards?.(stage, stateOf(stage)) ?? []),
      ...(await disagreements(stage)),
      ...(await logFaults(stage, decision.log)),
    ],
  }
}

/**
 * Does it, and does it again where the answer was lost. That it was done already, in the words of `isDone`, is an answer
 * too. Any other failure is one.
 */
export async function untilTold(act: () => Promise<unknown>, isDone?: string): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (error instanceof RefusedError && error.reason === isDone) return
    if (!(error instanceof CommitpostError) || error.code !== 'STORE_UNAVAILABLE') throw error
    await untilTold(act, isDone)
  }
}

/** Compares what is there with what should be; names the difference. */
export function differences(what: string, found: unknown, expected: unknown): readonly string[] {
  const [is, should] = [JSON.stringify(found), JSON.stringify(expected)]
  return is === should ? [] : [`${what}: ${is}, not ${should}`]
}

/** The rows of a question, each as an array. */
export async function ask(stage: Stage, sql: string, values: readonly unknown[] = []): Promise<unknown[][]> {
  const { rows } = await stage.db.pool.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' })
  return rows
}

/** How often a handler saw it, or what stands in its place. */
export function sightsOf(stage: Stage, { eventId }: SceneEvent): number {
  return stage.journal.entries.filter((entry) => entry.kind === 'seen' && entry.eventId === eventId).length
}

/** An act is in the log as often as it happened, and the log's chain holds. */
export async function logFaults(stage: Stage, expected: readonly string[]): Promise<readonly string[]> {
  const entries = await ask(
    stage,
    `select action || ' ' || affected from outbox_operator_log where operator = $1 order by id`,
    [ACT.operator],
  )
  const store = postgresStore({ pool: stage.db.pool, schema: stage.db.schema })
  const { holds } = await createOutbox({ store, events: catalogue }).proof.audit()
  return [
    ...differences('the log says', entries.flat(), expected),
    ...(holds ? [] : ['the chain of the operator log is broken']),
  ]
}

/** By position, because an amended delivery has another event: what is open is dead, and what blocks its key is open. */
export async function disagreements(stage: Stage): Promise<readonly string[]> {
  const rows = await ask(
    stage,
    `select 'open, and not dead: ' || l.event_id from outbox_dead_letter l
      where not l.resolved and not exists (
        select 1 from outbox_delivery d
         where d.id = l.position and d.subscription_id = l.subscription_id and d.status = 'DEAD')
     union all
     select 'blocks its key for good: ' || d.event_id from outbox_delivery d
      where d.status = 'DEAD' and d.held and not exists (
        select 1 from outbox_dead_letter l
         where l.position = d.id and l.subscription_id = d.subscription_id and not l.resolved)`,
  )
  return rows.flat().map(String)
}
