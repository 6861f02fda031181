import { dropSchemas, settleDown } from './clean-up.ts'
import type { ContenderSettings, DrainReport, DrainTask } from './protocol.ts'
import type { Session } from './scenario.ts'
import { type Program, runToReport, startProgram } from './start-program.ts'

/** One contender with its settings. */
export interface DrainContender {
  readonly name: string
  readonly program: 'commitpost' | 'graphile-worker' | 'pg-boss'
  readonly settings: ContenderSettings
  readonly keys?: number
  readonly subscriptions?: number
  readonly processes?: number
  /** Its backlog, as a multiple of that of `drain`. */
  readonly share?: number
}

/** Loads a backlog, times the contender until all of it is done, checks that it is, and records the figures. */
export async function measureDrain(
  session: Session,
  scenario: string,
  contender: DrainContender,
): Promise<void> {
  if (!session.includes(contender.name)) return
  const { keys = 100_000, subscriptions = 1, processes = 1, share = 1, program, settings, name } = contender
  const events = Math.round(session.events * share)
  const task = { url: session.database.url, events, keys, subscriptions, processes, settings }
  const step = (text: DrainTask['step']): DrainTask => {
    session.progress(`${scenario}: ${name}: ${text}`)
    return { ...task, step: text }
  }
  await dropSchemas(session.database)
  await runToReport<null>(program, step('load'))
  await settleDown(session.database)
  const programs = Array.from({ length: processes }, () => startProgram<DrainReport>(program, step('drain')))
  await Promise.all(programs.map((started) => started.ready))
  const serverBefore = session.database.cpuMicros()
  const reports = await drainTogether(programs, events * subscriptions)
  const serverAfter = session.database.cpuMicros()
  await runToReport<null>(program, step('verify'))
  session.results.add({
    scenario,
    contender: name,
    round: session.round,
    figures: {
      ...figuresOf(reports, events * subscriptions),
      ...(serverBefore !== null &&
        serverAfter !== null && { postgresMicros: (serverAfter - serverBefore) / (events * subscriptions) }),
    },
  })
}

async function drainTogether(
  programs: readonly Program<DrainReport>[],
  expected: number,
): Promise<readonly DrainReport[]> {
  const handled = programs.map(() => 0)
  for (const [index, program] of programs.entries()) {
    program.onProgress((value) => {
      handled[index] = value
      if (handled.reduce((sum, count) => sum + count, 0) < expected) return
      for (const each of programs) each.tell({ type: 'stop' })
    })
  }
  for (const program of programs) program.tell({ type: 'go' })
  return await Promise.all(programs.map((program) => program.report))
}

function figuresOf(reports: readonly DrainReport[], deliveries: number): Record<string, number> {
  const largest = (figure: keyof DrainReport): number => Math.max(...reports.map((report) => report[figure]))
  return {
    perSecond: deliveries / largest('seconds'),
    handledPerSecond: deliveries / largest('handledSeconds'),
    nodeMicros: reports.reduce((sum, report) => sum + report.cpuMicros, 0) / deliveries,
    maxRssMegabytes: largest('maxRssBytes') / 1_048_576,
  }
}
