import { saysWhatHappened } from './past-tense.ts'

/** A fact that happened, or an order that something shall happen. */
export type EventKind = 'event' | 'command'

/**
 * How the names of a catalogue are checked: PascalCase with a verb in the past tense, UPPER_SNAKE_CASE, anything, a
 * pattern, or a function that says what is wrong (null when nothing is).
 */
export type NameRule = 'past-tense' | 'upper-snake' | 'any' | RegExp | ((name: string) => string | null)

const PASCAL_CASE = /^[A-Z][A-Za-z0-9]*$/
const UPPER_SNAKE = /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/
// Whatever the rule, a name is also a label in metrics, logs and headers.
const STORABLE_NAME = /^[\p{L}\p{N}][\p{L}\p{N}._:/-]{0,254}$/u

/** What is wrong with a name under a rule, or null. */
export function nameProblem(name: string, kind: EventKind, rule: NameRule): string | null {
  const unstorable = storedNameProblem(name)
  if (unstorable !== null) return unstorable
  if (typeof rule === 'function') return rule(name)
  if (rule instanceof RegExp) return matchesWhole(rule, name) ? null : `must match ${String(rule)}`
  switch (rule) {
    case 'any':
      return null
    case 'upper-snake':
      return UPPER_SNAKE.test(name) ? null : 'must be UPPER_SNAKE_CASE, as in LEDGER_POSTED'
    case 'past-tense':
      return pastTenseProblem(name, kind)
    default:
      return rule satisfies never
  }
}

/** What keeps a name from being stored as an event type, or null. */
export function storedNameProblem(name: string): string | null {
  return STORABLE_NAME.test(name)
    ? null
    : 'must be 1 to 255 letters, digits or . _ : / - and start with a letter or digit'
}

function pastTenseProblem(name: string, kind: EventKind): string | null {
  if (!PASCAL_CASE.test(name)) return 'must be PascalCase, as in PaymentSucceeded'
  if (kind === 'command' || saysWhatHappened(name)) return null
  return (
    'must say what happened, with a verb in the past tense (PaymentSucceeded, not PaymentSuccess). ' +
    "A command is declared with kind: 'command'; another rule is chosen with the option names"
  )
}

// A global or sticky expression remembers where it stopped, and would refuse every second name.
function matchesWhole(rule: RegExp, name: string): boolean {
  return new RegExp(rule.source, rule.flags.replace(/[gy]/g, '')).test(name)
}
