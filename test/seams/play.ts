import { systemClock } from '../../src/index.ts'
import { deliveryFaults } from '../support/delivery-faults.ts'
import { anomaliesOf } from '../support/journal.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { closeJournal } from './close-journal.ts'
import type { Scene } from './scene.ts'
import type { Fault } from './seam-pool.ts'
import { type Process, Stage } from './stage.ts'

/** What came of a scene: empty when all is well. */
export interface SceneVerdict {
  /** What the history shows, by the checker's names. */
  readonly anomalies: Readonly<Record<string, number>>
  /** Repeated although it was not in hand when the process died. */
  readonly unexplained: readonly string[]
  /** Inconsistencies of the tables, at the moment of the fault and after everything has had its time. */
  readonly faults: readonly string[]
}

export const CLEAN: SceneVerdict = { anomalies: {}, unexplained: [], faults: [] }

/** Where a process is broken, and how. */
export interface Break {
  readonly seam: string
  readonly fault: Fault
}

/** What came of a play. */
export interface Played {
  readonly verdict: SceneVerdict
  /** The seams that were passed, in their order. */
  readonly seams: readonly string[]
  /** The smallest operations that sent something at each of them. */
  readonly partsAt: ReadonlyMap<string, ReadonlySet<string>>
}

/** Plays a scene to its end, with a fault at one seam or without any. */
export async function play(scene: Scene, broken?: Break): Promise<Played> {
  await using stage = await Stage.open(scene.subscription)
  await scene.prepare(stage)
  const victim = stage.victim()
  const excused = await live(scene, stage, victim, broken)
  const faults = await namesOfFaults(stage)
  await finish(scene, stage)
  await closeJournal(stage)
  const judged = stage.journal.judge()
  const verdict = {
    anomalies: anomaliesOf(judged),
    unexplained: judged.explained.duplicates
      .filter(({ eventId }) => !excused.has(eventId))
      .map(({ text }) => text),
    faults: [...faults, ...(await namesOfFaults(stage)), ...(await scene.inspect(stage))],
  }
  return { verdict, seams: [...victim.pool.seams], partsAt: victim.pool.partsAt }
}

/** Lets the victim live, or die. Returns the events whose repetition that explains: those it had in hand. */
async function live(
  scene: Scene,
  stage: Stage,
  victim: Process,
  broken: Break | undefined,
): Promise<ReadonlySet<string>> {
  if (broken === undefined) {
    await scene.live(stage, victim)
    return new Set()
  }
  const sprung = comesTo(
    broken.seam,
    victim.pool.trap(broken.seam, broken.fault, (seam) => passUnheard(stage, seam)),
  )
  const lived = scene.live(stage, victim)
  if (broken.fault === 'outcome-unknown') {
    await Promise.all([lived, sprung])
    return new Set()
  }
  // Nobody waits for what a dead process would have done.
  lived.catch(() => undefined)
  await sprung
  stage.journal.died('victim')
  await stage.untilVictimIsGone()
  const { rows } = await stage.db.pool.query<{ event_id: string }>(
    `select event_id from outbox_delivery where locked_by = 'victim'`,
  )
  await stage.lapse('victim')
  return new Set(rows.map(({ event_id }) => event_id))
}

async function comesTo(seam: string, sprung: Promise<void>): Promise<void> {
  const patience = new AbortController()
  const inVain = systemClock.sleep(PATIENCE_MS, patience.signal).then(() => {
    if (!patience.signal.aborted) throw new Error(`The process never came to ${seam}`)
  })
  await Promise.race([sprung, inVain])
  patience.abort()
}

/**
 * Leases whose owner never heard of them lapse: their time passes here at once. Lanes that are claimed from and rows of
 * lanes need no such help: a worker whose claim fails gives its lanes back.
 */
async function passUnheard(stage: Stage, seam: string): Promise<void> {
  const past = `clock_timestamp() - interval '1 ms'`
  if (seam.startsWith('takeLanes:')) {
    await stage.db.pool.query(`update outbox_lane set until = ${past} where owner = 'victim'`)
  }
  if (/^claim(?:Suspects)?: insert into outbox_lease \+ update/.test(seam)) {
    await stage.db.pool.query(
      `update outbox_delivery set locked_until = ${past}
        where ordering_key is null and lease_token >> 20 = (select last_value from outbox_lease_token)`,
    )
    await stage.db.pool.query(
      `update outbox_lease set until = ${past} where token >> 20 = (select last_value from outbox_lease_token)`,
    )
  }
}

/** A fresh process sees to the rest; a person sends what died on its way again, once the cause is mended. */
async function finish(scene: Scene, stage: Stage): Promise<void> {
  const rescuer = stage.process('rescuer')
  await scene.rescue(stage, rescuer)
  await rescuer.start()
  await stage.drained()
  stage.mend()
  const { outbox } = rescuer
  // The oldest first: those of one key go in their order.
  for (const { id } of (await outbox.deadLetters.list()).toReversed()) {
    await outbox.deadLetters.retry(id, { operator: 'a person' })
  }
  await stage.drained()
}

async function namesOfFaults(stage: Stage): Promise<readonly string[]> {
  // Where one was amended, its delivery is that of the event in its place.
  const { rows } = await stage.db.pool.query<{ amended_from: string; event_id: string }>(
    'select amended_from, event_id from outbox_amendment',
  )
  const inPlaceOf = new Map(rows.map(({ amended_from, event_id }) => [amended_from, event_id]))
  const owed = stage.owed.map(({ eventId }) => inPlaceOf.get(eventId) ?? eventId)
  const faults = await deliveryFaults(stage.db.pool, owed)
  return Object.entries(faults).map(([name, eventIds]) => `${name}: ${eventIds.join(', ')}`)
}
