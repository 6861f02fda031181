import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbox, type ExportRecord, type Exports } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { rowsOf } from '../retain/support.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import type { Scene } from './scene.ts'
import { catalogue, events } from './scene-events.ts'
import type { Process, Stage } from './stage.ts'

const directories = new WeakMap<Stage, string>()
const directoryOf = (stage: Stage): string => directories.get(stage) as string

/** Writes a stream to files, in more than one of them, and records it. */
export const exporting: Scene = {
  name: 'export',
  subscription: { order: 'none' },
  operations: [
    'lastExport',
    'proposeBarrier',
    'isDecided',
    'exportRange',
    'lateItems',
    'exportItems',
    'readExported',
    'recordExport',
    'isKnownStream',
  ],
  prepare: async (stage) => {
    directories.set(stage, await mkdtemp(join(tmpdir(), 'commitpost-seam-')))
    await stage.subscribe()
    await stage.publish(events('a', 'nothing', 2), events('b', 'nothing'))
  },
  live: async (stage, process) => {
    await run(stage, process).catch(() => run(stage, process))
    // Nothing is new: it must see that, whatever befell the one before.
    await run(stage, process).catch(() => run(stage, process))
  },
  rescue: async (stage, process) => {
    await run(stage, process)
  },
  inspect: async (stage) => {
    const outbox = createOutbox({
      store: postgresStore({ pool: stage.db.pool, schema: stage.db.schema }),
      events: catalogue,
    })
    const problems = await inspectExports(stage, outbox.exports)
    const { holds } = await outbox.proof.audit()
    await rm(directoryOf(stage), { recursive: true })
    return [...problems, ...(holds ? [] : ['the chain of exports is broken'])]
  },
}

function run(stage: Stage, { outbox }: Process): Promise<ExportRecord | null> {
  return outbox.exports.run({
    stream: 'seam.step',
    directory: directoryOf(stage),
    maxFileEvents: 1,
    operator: 'a person',
    waitMs: PATIENCE_MS,
  })
}

/** Every event is in exactly one recorded export, which holds; what else lies there says that it is none. */
async function inspectExports(stage: Stage, exports: Exports): Promise<readonly string[]> {
  const recorded = await exports.list()
  const exported = (await Promise.all(recorded.map(({ location }) => rowsOf(location)))).flat()
  const ids = exported.map((row) => String(row['eventId'])).toSorted()
  const owed = stage.owed.map(({ eventId }) => eventId).toSorted()
  const problems = ids.join() === owed.join() ? [] : [`exported ${ids.length} of ${owed.length} events`]
  for (const name of await readdir(directoryOf(stage))) {
    const path = join(directoryOf(stage), name)
    const isRecorded = recorded.some(({ location }) => location === path)
    const { holds, problem } = await exports.verify(path)
    const isKnown = holds
      ? isRecorded
      : ['half-written', 'not-recorded', 'record-differs'].includes(problem?.kind ?? '')
    if (!isKnown || (isRecorded && !holds))
      problems.push(`${name}: ${problem?.kind ?? 'holds'}, recorded: ${isRecorded}`)
  }
  return problems
}
