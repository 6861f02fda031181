import { LONGEST_NOTE, LONGEST_OPERATOR, POLICY_PREFIX } from '../runtime/operator-act.ts'
import { atMost, type OptionSpec, required, requiredText, rowNumber, text } from './option-spec.ts'

/** A name that is not one of a policy, nor too long to record: whoever acts at a terminal is a person. */
export function ofPerson<Value extends string | undefined>(spec: OptionSpec<Value>): OptionSpec<Value> {
  const short = atMost(LONGEST_OPERATOR, spec)
  return {
    ...spec,
    read: (given, name, messages) =>
      given?.trim().startsWith(POLICY_PREFIX)
        ? { ok: false, problem: messages.usage.mustBePerson(name, POLICY_PREFIX) }
        : short.read(given?.trim(), name, messages),
  }
}

/** Who acts: needed by every command that changes something, and recorded in the same transaction. */
export const operatorOption: OptionSpec<string> = ofPerson(
  requiredText('NAME', {
    en: 'Who does this: it is recorded with the act',
    ko: '작업하는 사람의 이름입니다. 작업과 함께 기록됩니다',
  }),
)

/** Why. */
export const noteOption: OptionSpec<string | undefined> = atMost(
  LONGEST_NOTE,
  text('TEXT', {
    en: 'Why: it is recorded with the act',
    ko: '사유입니다. 작업과 함께 기록됩니다',
  }),
)

/** Which dead letter. */
export const deadLetterOperand: OptionSpec<string> = required(
  rowNumber('id', {
    en: 'The number of the dead letter',
    ko: '데드 레터 번호입니다',
  }),
)

/** Which subscription. */
export const subscriptionOperand: OptionSpec<string> = requiredText('subscription', {
  en: 'The name of the subscription',
  ko: '구독 이름입니다',
})
