import type { AlarmState, MonitorStore, MonitorTurn, UntoldLetters } from '../store/alert-store.ts'
import type { Alert } from './alert.ts'
import type { AlertComposer } from './alert-composer.ts'
import type { ResolvedAlertOptions } from './alert-options.ts'
import { type Condition, findConditions, mostToCount, type Seen, thresholdOf } from './conditions.ts'
import { type AlarmStep, decideAlarms } from './decide-alarms.ts'
import type { SinkFailure } from './sink-sender.ts'

/** What one look is made of. */
export interface LookParts {
  readonly store: MonitorStore
  readonly options: Pick<ResolvedAlertOptions, 'rules' | 'coolDownMs' | 'reportEveryMs'>
  readonly composer: AlertComposer
  /** Resolves with whether anybody was told. Never rejects. */
  readonly tell: (alert: Alert) => Promise<boolean>
}

/** What one look came to. */
export interface MonitorRound {
  /** The database's time. */
  readonly at: Date
  readonly seen: Seen
  /** What holds now. */
  readonly conditions: readonly Condition[]
  /** What somebody was told. */
  readonly told: readonly Alert[]
  /** What nobody could be told: it is tried again by the next look. */
  readonly untold: readonly Alert[]
  /** Which sinks failed meanwhile, and with what. Those that still try when another has taken all are not waited for. */
  readonly failures: readonly SinkFailure[]
}

/** More new dead letters than this are told of together. */
const MOST_APART = 10
/** A mean of fewer deliveries says nothing. */
const LEAST_FOR_MEAN = 10
/** A rate is measured over at least this time. */
const SHORTEST_RATE_MS = 10_000
const NO_LETTERS: UntoldLetters = { ids: [], letters: [], groups: [] }

/** Looks at what is there now, without telling or writing anything. */
export async function see(
  store: Pick<MonitorStore, 'readFigures' | 'readOpenLetters'>,
  rules: ResolvedAlertOptions['rules'],
  turn: Pick<MonitorTurn, 'whole' | 'now' | 'rate'>,
): Promise<Seen> {
  const most = mostToCount(rules)
  const letters = await store.readOpenLetters(most)
  if (!turn.whole) return { letters, figures: null, eventsPerSecond: null }
  const figures = await store.readFigures({
    most,
    stuckAfterMs: rules.stuckAfterMs,
    leastForMean: LEAST_FOR_MEAN,
    workerMissingMs: rules.workerMissingMs ?? 0,
  })
  return { letters, figures, eventsPerSecond: rateOf(turn, figures.position) }
}

/** Looks, tells what is to be told, and writes down what was. Null when the turn had lapsed by then. */
export async function lookAndTell(
  parts: LookParts,
  turn: MonitorTurn,
): Promise<Omit<MonitorRound, 'failures'> | null> {
  const { store, options, composer } = parts
  const { rules } = options
  const untoldLetters = rules.deadLetter ? await store.readUntoldLetters(MOST_APART) : NO_LETTERS
  const seen = await see(store, rules, turn)
  const conditions = findConditions(rules, seen)
  const states = (await store.readAlarms()).filter((state) => isJudged(state, parts, turn, seen))
  const steps = decideAlarms(conditions, states, { now: turn.now, coolDownMs: options.coolDownMs })
  const vanished = rules.workerMissingMs === null ? [] : (seen.figures?.vanished ?? [])
  const alarms = steps.map((step) => ({ step, alert: alertOf(step, composer, turn.now) }))
  const letterAlerts = composer.letters(untoldLetters, turn.now)
  const workerAlerts = composer.vanished(vanished, turn.now)
  const reports = isReportDue(parts, turn) ? [composer.report(seen, turn.now)] : []
  const alerts = [...letterAlerts, ...alarms.flatMap(({ alert }) => alert ?? []), ...workerAlerts, ...reports]
  const told = await tellAll(parts, alerts)
  const isTold = (alert: Alert | undefined): boolean => alert !== undefined && told.has(alert)
  const recorded = await store.recordRound({
    turn,
    ...statesAfter(alarms.map(({ step, alert }) => ({ step, wasTold: alert === null || told.has(alert) }))),
    toldLetters: toldLetterIds(untoldLetters, letterAlerts, told),
    toldWorkers: isTold(workerAlerts[0]) ? vanished.map(({ workerId }) => workerId) : [],
    reported: isTold(reports[0]),
    position: measured(turn, seen),
  })
  if (!recorded) return null
  return {
    at: turn.now,
    seen,
    conditions,
    told: alerts.filter((alert) => told.has(alert)),
    untold: alerts.filter((alert) => !told.has(alert)),
  }
}

/** A look at dead letters alone knows nothing of the other conditions, nor does one without a measurement of the rate. */
function isJudged({ rule }: AlarmState, { options }: LookParts, turn: MonitorTurn, seen: Seen): boolean {
  const threshold = thresholdOf(options.rules, rule)
  if (threshold === undefined || threshold === null) return false
  if (rule === 'eventRate' && seen.eventsPerSecond === null) return false
  return turn.whole || rule === 'unresolved'
}

async function tellAll({ tell }: LookParts, alerts: readonly Alert[]): Promise<ReadonlySet<Alert>> {
  const told = new Set<Alert>()
  await Promise.all(
    alerts.map(async (alert) => {
      if (await tell(alert)) told.add(alert)
    }),
  )
  return told
}

function alertOf(step: AlarmStep, composer: AlertComposer, at: Date): Alert | null {
  if (step.kind === 'alarm') return composer.alarm(step.condition, step.since, at)
  return step.kind === 'recovered' ? composer.recovered(step.state, step.since, at) : null
}

interface StatesAfter {
  readonly alarms: readonly AlarmState[]
  readonly forgotten: readonly string[]
}

function statesAfter(
  results: readonly { readonly step: AlarmStep; readonly wasTold: boolean }[],
): StatesAfter {
  const alarms = results.flatMap(({ step, wasTold }) => {
    if (step.kind === 'forget') return []
    if (step.kind === 'keep') return [step.state]
    if (wasTold) return [step.ifTold]
    return step.kind === 'alarm' ? [step.ifNot] : []
  })
  return { alarms, forgotten: results.flatMap(({ step }) => (step.kind === 'forget' ? [step.key] : [])) }
}

/** One alert for each letter, in the same order, or one for all of them. */
function toldLetterIds(
  { ids, groups }: UntoldLetters,
  alerts: readonly Alert[],
  told: ReadonlySet<Alert>,
): readonly string[] {
  return ids.filter((_, n) => {
    const alert = alerts[groups.length > 0 ? 0 : n]
    return alert !== undefined && told.has(alert)
  })
}

function isReportDue({ options }: LookParts, turn: MonitorTurn): boolean {
  const { reportEveryMs } = options
  return turn.whole && reportEveryMs !== null && turn.now.getTime() - turn.reportAt.getTime() >= reportEveryMs
}

function rateOf({ rate, now }: Pick<MonitorTurn, 'rate' | 'now'>, position: number): number | null {
  if (rate === null) return null
  const elapsedMs = now.getTime() - rate.at.getTime()
  return elapsedMs < SHORTEST_RATE_MS ? null : (Math.max(0, position - rate.position) * 1_000) / elapsedMs
}

function measured({ rate, now }: MonitorTurn, { figures }: Seen): number | null {
  if (figures === null) return null
  const isOld = rate === null || now.getTime() - rate.at.getTime() >= SHORTEST_RATE_MS
  return isOld ? figures.position : null
}
