import { isRecord, shown, unknownOptionProblems } from './option-checks.ts'
import { LONGEST_ERROR_TEXT } from './text.ts'

/** Who acts, and why. Both are kept with the act. */
export interface OperatorAct {
  /** At most 200 characters. */
  readonly operator: string
  /** At most 2,000 characters. */
  readonly note?: string
}

/** The longest remark that is kept with an act: a remark, not a document. */
export const LONGEST_NOTE: number = LONGEST_ERROR_TEXT
/** The longest name of whoever acts: one that is cut might be somebody else's. */
export const LONGEST_OPERATOR = 200
/** What stands before the name of a policy that acts: no person may be called so. */
export const POLICY_PREFIX = 'policy:'

/** What is wrong with the description of an act, for all acts that are recorded. Some may say more than who and why. */
export function actProblems(act: unknown, more: readonly string[] = []): readonly (string | null)[] {
  if (!isRecord(act)) return [`the act must be { operator, note? }, but is ${shown(act)}`]
  const { operator, note } = act
  const isNamed = typeof operator === 'string' && operator.trim() !== ''
  return [
    isNamed ? operatorProblem(operator) : 'operator must name who does this: it is recorded with the act',
    noteProblem(note),
    ...unknownOptionProblems(act, ['operator', 'note', ...more]),
  ]
}

/** What is wrong with a name that is given; blanks around it do not count. */
export function operatorProblem(operator: string): string | null {
  const name = operator.trim()
  if (name.startsWith(POLICY_PREFIX)) {
    return `operator must be the name of a person: "${POLICY_PREFIX}" stands before those of policies`
  }
  return name.length <= LONGEST_OPERATOR
    ? null
    : `operator must be at most ${LONGEST_OPERATOR} characters long, but is ${name.length}`
}

function noteProblem(note: unknown): string | null {
  if (note === undefined || note === null) return null
  if (typeof note !== 'string') return `note must be text, but is ${shown(note)}`
  return note.length <= LONGEST_NOTE
    ? null
    : `note must be at most ${LONGEST_NOTE} characters long, but is ${note.length}`
}
