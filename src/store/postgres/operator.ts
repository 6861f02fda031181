import { InvalidOptionsError } from '../../runtime/errors.ts'
import { LONGEST_OPERATOR, operatorProblem } from '../../runtime/operator-act.ts'
import { storableText } from '../../runtime/text.ts'

/** The operator's name in the form it is recorded in. Refuses an empty one: acts are never anonymous. */
export function operatorName(operator: string): string {
  const name = storableText(operator.trim(), LONGEST_OPERATOR)
  const problem =
    name === ''
      ? 'operator must be a name: it is recorded with the act, so that others know whom to ask'
      : operatorProblem(operator)
  if (problem !== null) throw new InvalidOptionsError('the act of an operator', [problem])
  return name
}

/** A remark in the form it is recorded in. Null where there is none. */
export function operatorNote(note: string | null): string | null {
  if (note === null || note.trim() === '') return null
  return storableText(note.trim())
}
