import type { DeadLetterView } from '../dead-letter/read-letters.ts'
import type { Invocation } from './command.ts'
import { noteOption, ofPerson } from './operator-options.ts'
import { flag, type OptionSpec, text, type ValuesOf } from './option-spec.ts'
import { usageError } from './parse.ts'

/** The options of commands that can show what is hidden by default. */
export interface RevealOptions extends Readonly<Record<string, OptionSpec<unknown>>> {
  readonly reveal: OptionSpec<boolean>
  readonly operator: OptionSpec<string | undefined>
  readonly note: OptionSpec<string | undefined>
}

/** How they are read and explained. */
export const revealOptions: RevealOptions = {
  reveal: flag({
    en: 'Show also what is sensitive. Needs --operator, and is recorded',
    ko: '민감한 값도 보여 줍니다. --operator가 필요하며 기록됩니다',
  }),
  operator: ofPerson(
    text('NAME', {
      en: 'With --reveal: who looks at it',
      ko: '--reveal과 함께: 보는 사람의 이름입니다',
    }),
  ),
  note: noteOption,
}

/** How dead letters are to be shown. @throws CliError where nobody is named who is to see everything. */
export function viewOf(
  { reveal, operator, note }: ValuesOf<RevealOptions>,
  commandName: string,
  { messages }: Pick<Invocation<unknown>, 'messages'>,
): DeadLetterView {
  if (!reveal) return {}
  if (operator === undefined || operator.trim() === '') {
    throw usageError([messages.care.revealNeedsOperator], commandName)
  }
  return { reveal: { operator, ...(note === undefined ? {} : { note }) } }
}
