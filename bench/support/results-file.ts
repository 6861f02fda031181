import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { drawChart } from './chart.ts'
import type { Machine } from './machine.ts'
import { type Bar, isMet, Results, type Sample } from './results.ts'
import type { Scenario } from './scenario.ts'

/** What a run depends on: samples of different circumstances are never put together. */
export interface Circumstances {
  readonly events: number
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  /** The settings of the server that matter here. */
  readonly server: Readonly<Record<string, string>>
  /** How everything is measured. */
  readonly method: Readonly<Record<string, unknown>>
}

/** What stands in a file of figures. */
export type FiguresFile = Circumstances & {
  readonly bars: readonly (Bar & { readonly met: boolean })[]
  readonly rounds: readonly Sample[]
}

/** How much of a benchmark is run. */
export interface Extent {
  readonly isFullSize: boolean
  /** Whether some scenarios or contenders are left out. */
  readonly isPart: boolean
  /** Whether its figures are added to those in the file. */
  readonly isResumed: boolean
}

/** Where the figures go: neither a trial nor a part of the scenarios may replace those of a whole run. */
export function figuresPath(name: 'core' | 'stream', { isFullSize, isPart, isResumed }: Extent): string {
  const isKept = isFullSize && (isResumed || !isPart)
  return `bench/results/${isKept ? name : 'trial'}.json`
}

/**
 * Reads the samples of an earlier run under the same circumstances.
 * @throws Error when they were others: a median of both would be of neither.
 */
export async function resumeResults(path: string, circumstances: Circumstances): Promise<Results> {
  const text = await readFile(path, 'utf8').catch(() => null)
  if (text === null) return new Results()
  const { bars: _, rounds, ...before } = JSON.parse(text) as FiguresFile
  const now: Readonly<Record<string, unknown>> = { ...asWritten(circumstances) }
  const then: Readonly<Record<string, unknown>> = before
  const differing = Object.keys({ ...then, ...now }).filter((key) => !isDeepStrictEqual(then[key], now[key]))
  if (differing.length > 0) {
    throw new Error(
      `${path} was measured under other circumstances (${differing.join(', ')}). Run without --resume to begin anew.`,
    )
  }
  return new Results(rounds)
}

/** What a JSON file makes of a value: settings that are not given are not in it. */
function asWritten<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value
}

/** Writes the figures and the chart beside them. */
export async function writeResults(
  path: string,
  circumstances: Circumstances,
  results: Results,
  scenarios: readonly Scenario[],
): Promise<void> {
  const { machine, versions, events } = circumstances
  const caption = `${events.toLocaleString('en')} events, ${machine.cores} cores, PostgreSQL ${versions['postgres']}`
  const bars = scenarios.flatMap((scenario) => scenario.bars(results))
  await writeFigures(path, circumstances, results, bars)
  await writeFile(path.replace(/\.json$/, '.svg'), drawChart(results, scenarios, caption))
}

/** Writes the figures: every round, and how they stand to the bars. */
export async function writeFigures(
  path: string,
  circumstances: Circumstances,
  results: Results,
  bars: readonly Bar[],
): Promise<void> {
  const content = {
    bars: bars.map((each) => ({
      name: each.name,
      figure: Number(each.figure.toPrecision(4)),
      bar: each.bar,
      is: each.is,
      met: isMet(each),
    })),
    ...circumstances,
    rounds: results.samples.map(withRoundedFigures),
  }
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${JSON.stringify(content, null, 2)}\n`)
}

function withRoundedFigures(sample: Sample): Sample {
  const figures = Object.entries(sample.figures).map(([name, value]) => [name, Number(value.toPrecision(5))])
  return { ...sample, figures: Object.fromEntries(figures) as Record<string, number> }
}
