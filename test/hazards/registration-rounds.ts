import type { StartFrom, SubscriptionDefinition } from '../../src/store/subscription-store.ts'
import { type Published, PublisherLoad } from './publisher-load.ts'
import type { Hazard } from './support.ts'

/** One registration under load, with the client's own times of it. */
interface Round {
  readonly id: number
  readonly startFrom: StartFrom
  readonly stream: string
  readonly calledMs: number
  readonly returnedMs: number
  readonly retiredMs: number
}

/**
 * What rounds came to, in events. None can come twice: the primary key of a delivery is its subscription and the position of
 * its event. A publisher that is refused for that, or for anything but its old snapshot, ends the load with its error.
 */
export interface Verdict {
  readonly rounds: number
  readonly expected: number
  readonly missed: number
  /** Deliveries of events that were over before it was registered, or never committed. */
  readonly unwanted: number
}

/** Makes a subscription known; `join` takes it as far as it needs to go while publishers run. */
export type Register = (
  definition: SubscriptionDefinition,
) => Promise<{ readonly id: number; join(): Promise<void> }>

const STREAM_ROUNDS = 10
/** Before anything was published, so that the sweep by time is to find what the one from the beginning does. */
const LONG_AGO = new Date('2000-01-01T00:00:00Z')
const EVERYWHERE: readonly StartFrom[] = ['now', 'beginning', LONG_AGO]

/** How a load of registrations is made. */
export interface RoundsOptions {
  readonly rounds: number
  readonly seed: number
  readonly register: Register
  /** True registers the next while the one before joins, so that one transaction may meet many. */
  readonly overlapping?: boolean
  /**
   * Where they begin, in turn.
   * @default now, from the beginning, from a time
   */
  readonly startsFrom?: readonly StartFrom[]
  /** True ends with the first round that missed an event: to show that a naive form does, however long that takes. */
  readonly untilMissed?: boolean
}

/** Registers one subscription after the other while publishers run, and counts what each got and should have got. */
export async function registerUnderLoad(h: Hazard, options: RoundsOptions): Promise<Verdict> {
  const load = new PublisherLoad(h, options.seed)
  const startsFrom = options.startsFrom ?? EVERYWHERE
  const rounds: Promise<Round>[] = []
  load.stream = 's0'
  await load.start()
  for (let n = 0; n < options.rounds; n += 1) {
    // A new stream now and then, so that those from the beginning do not begin with everything.
    load.stream = `s${Math.floor(n / STREAM_ROUNDS)}`
    const definition = define(n, load.stream, startsFrom[n % startsFrom.length] as StartFrom)
    const { round } = await oneRound(h, load, definition, options.register)
    rounds.push(round)
    if (options.overlapping !== true) await round
    if (options.untilMissed === true && (await judge(h, await round, load.published)).missed > 0) break
  }
  const made = await Promise.all(rounds)
  await load.stop()
  const verdicts = await Promise.all(made.map((round) => judge(h, round, load.published)))
  return verdicts.reduce((a, b) => ({
    rounds: a.rounds + b.rounds,
    expected: a.expected + b.expected,
    missed: a.missed + b.missed,
    unwanted: a.unwanted + b.unwanted,
  }))
}

/** Resolves when the subscription is registered; its round ends when everybody has published since. */
async function oneRound(
  h: Hazard,
  load: PublisherLoad,
  definition: SubscriptionDefinition,
  register: Register,
): Promise<{ readonly round: Promise<Round> }> {
  const { stream } = load
  const calledMs = performance.now()
  const registration = await register(definition)
  const { id } = registration
  const returnedMs = performance.now()
  const finish = async (): Promise<Round> => {
    await Promise.all([registration.join(), load.nextTransactions()])
    // Everybody who begins after it was registered has had the time to publish.
    await load.nextTransactions()
    const retiredMs = performance.now()
    await h.db.pool.query(
      `update outbox_subscription set state = 'retired', retired_at = now(), retired_by = 'kim', closed_at = now() where id = $1`,
      [id],
    )
    return { id, startFrom: definition.startFrom, stream, calledMs, returnedMs, retiredMs }
  }
  return { round: finish() }
}

function define(n: number, stream: string, startFrom: StartFrom): SubscriptionDefinition {
  const ordered = n % 4 >= 2
  return {
    name: `sub${n}`,
    streams: [stream],
    eventTypes: null,
    orderBy: ordered ? 'aggregate' : 'none',
    lanes: ordered ? 8 : 0,
    onDead: 'block',
    maxAttempts: 3,
    startFrom,
  }
}

async function judge(h: Hazard, round: Round, published: readonly Published[]): Promise<Verdict> {
  const { rows } = await h.db.pool.query<{ id: string }>(
    'select event_id as id from outbox_delivery where subscription_id = $1',
    [round.id],
  )
  const delivered = new Set(rows.map(({ id }) => id))
  const ofStream = published.filter(({ stream }) => stream === round.stream)
  const committed = new Set(ofStream.map(({ eventId }) => eventId))
  const due = ofStream.filter(
    ({ commitSentMs, commitAckedMs }) =>
      (round.startFrom !== 'now' || commitSentMs > round.returnedMs) && commitAckedMs < round.retiredMs,
  )
  const tooEarly = ofStream.filter(
    ({ eventId, commitAckedMs }) =>
      round.startFrom === 'now' && commitAckedMs < round.calledMs && delivered.has(eventId),
  )
  return {
    rounds: 1,
    expected: due.length,
    missed: due.filter(({ eventId }) => !delivered.has(eventId)).length,
    unwanted: tooEarly.length + rows.filter(({ id }) => !committed.has(id)).length,
  }
}
