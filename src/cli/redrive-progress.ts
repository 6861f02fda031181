import type { Clock } from '../runtime/clock.ts'
import { displayWidth, pad } from '../runtime/width.ts'
import type { RedriveProgress, RedriveSkip } from '../store/redrive-store.ts'
import type { Invocation } from './command.ts'
import { safeLine } from './text/safe.ts'

type Speech = Pick<Invocation<unknown>, 'messages' | 'formats'>

const COUNTS = ['waiting', 'onTheirWay', 'succeeded', 'failedAgain'] as const

/** How far a plan is, on one line. */
function progressLine(progress: RedriveProgress, { messages, formats }: Speech): string {
  const { fields } = messages.redrive
  return COUNTS.map((name) => `${fields[name]} ${formats.count(progress[name])}`).join('  ')
}

/** Longer than a worker needs to take what is there, or to take over from one that is gone. */
const QUIET_MS = 10_000

/** A line whenever something has changed; where nothing does for long, a note on what it waits for, once. */
export function progressPrinter(
  speech: Speech & Pick<Invocation<unknown>, 'terminal'>,
  clock: Pick<Clock, 'monotonicMs'>,
): (progress: RedriveProgress) => void {
  const { terminal, messages, formats } = speech
  let last = ''
  let changedMs = clock.monotonicMs()
  let isTold = false
  return (progress) => {
    const line = progressLine(progress, speech)
    const { oneOnItsWay } = progress
    const quietMs = clock.monotonicMs() - changedMs
    if (line !== last) {
      terminal.printLive(line)
      last = line
      changedMs = clock.monotonicMs()
      isTold = false
    } else if (oneOnItsWay !== null && quietMs >= QUIET_MS && !isTold) {
      const { subscription, eventId } = oneOnItsWay
      terminal.endLive()
      terminal.note(messages.redrive.stalled(formats.age(quietMs / 1_000), safeLine(subscription), eventId))
      isTold = true
    }
  }
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
