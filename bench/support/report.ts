import { print } from './progress.ts'
import { type Bar, isMet, type Results } from './results.ts'

/** Prints the medians of a scenario, one contender a line. */
export function printScenario(results: Results, name: string): void {
  const contenders = results.contenders(name)
  const figures = [
    ...new Set(
      results.samples.filter((each) => each.scenario === name).flatMap((each) => Object.keys(each.figures)),
    ),
  ]
  print(`\n${name.padEnd(52)}${figures.map(column).join('')}`)
  for (const contender of contenders) {
    const values = figures.map((figure) => short(results.median(name, contender, figure)))
    print(`  ${contender.padEnd(50)}${values.map(column).join('')}`)
  }
}

/** Prints every bar and whether it is met. */
export function printBars(bars: readonly Bar[]): void {
  print('')
  for (const bar of bars) {
    print(`${isMet(bar) ? 'met   ' : 'MISSED'}  ${bar.name}: ${short(bar.figure)} (${bar.is} ${bar.bar})`)
  }
}

function column(text: string): string {
  return text.padStart(Math.max(12, text.length + 2))
}

/** A figure with three digits, or all before the point. */
export function short(value: number | undefined): string {
  if (value === undefined) return '-'
  return value >= 1_000 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)))
}
