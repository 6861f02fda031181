import { InvalidOptionsError } from '../../runtime/errors.ts'
import { POLICY_PREFIX } from '../../runtime/operator-act.ts'
import { storableText } from '../../runtime/text.ts'

const LONGEST_NAME = 200

/** The operator's name in the form it is recorded in. Refuses an empty one: acts are never anonymous. */
export function operatorName(operator: string): string {
  const name = storableText(operator.trim(), LONGEST_NAME)
  if (name.startsWith(POLICY_PREFIX)) {
    throw new InvalidOptionsError('the act of an operator', [
      `operator must be the name of a person: "${POLICY_PREFIX}" stands before those of policies`,
    ])
  }
  if (name !== '') return name
  throw new InvalidOptionsError('the act of an operator', [
    'operator must be a name: it is recorded with the act, so that others know whom to ask',
  ])
}

/** A remark in the form it is recorded in. Null where there is none. */
export function operatorNote(note: string | null): string | null {
  if (note === null || note.trim() === '') return null
  return storableText(note.trim())
}
