import { unstorableText } from '../runtime/unstorable-text.ts'

const LONGEST_KEY = 255
const SEPARATOR = '\u001f'

/** Why this text cannot be an aggregate id or an ordering key, or null when it can. */
export function keyTextProblem(text: string): string | null {
  if (text === '') return 'must not be empty'
  if (text.length > LONGEST_KEY)
    return `must be at most ${LONGEST_KEY} characters long, but is ${text.length}`
  if (text.includes(SEPARATOR))
    return 'contains the control character U+001F, which divides the parts of an event'
  return unstorableText(text)
}
