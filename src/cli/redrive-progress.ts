import { displayWidth, pad } from '../runtime/width.ts'
import type { RedriveProgress, RedriveSkip } from '../store/redrive-store.ts'
import type { Invocation } from './command.ts'

type Speech = Pick<Invocation<unknown>, 'messages' | 'formats'>

const COUNTS = ['waiting', 'onTheirWay', 'succeeded', 'failedAgain'] as const

/** How far a plan is, on one line. */
export function progressLine(progress: RedriveProgress, { messages, formats }: Speech): string {
  const { fields } = messages.redrive
  return COUNTS.map((name) => `${fields[name]} ${formats.count(progress[name])}`).join('  ')
}

/** Where a plan stands, one fact per line. */
export function printProgress(
  progress: RedriveProgress,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { fields, skips, states, title } = messages.redrive
  const numbers = [
    'letters',
    'waiting',
    'driven',
    'onTheirWay',
    'succeeded',
    'failedAgain',
    'blocked',
  ] as const
  const skipped = Object.entries(progress.skipped) as [RedriveSkip, number][]
  const facts = [
    ...numbers.map((name) => [fields[name], progress[name]] as const),
    ...skipped.map(([why, count]) => [`${fields.skipped}: ${skips[why]}`, count] as const),
  ].filter(([name, count]) => count > 0 || name === fields.letters)
  const width = Math.max(...facts.map(([name]) => displayWidth(name)))
  terminal.print(terminal.style('title', title(progress.id, states[progress.state])))
  for (const [name, count] of facts) terminal.print(`${pad(name, width)}  ${formats.count(count)}`)
}
