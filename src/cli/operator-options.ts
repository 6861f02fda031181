import { type OptionSpec, required, requiredText, rowNumber, text } from './option-spec.ts'

/** Who acts: needed by every command that changes something, and recorded in the same transaction. */
export const operatorOption: OptionSpec<string> = requiredText('NAME', {
  en: 'Who does this: it is recorded with the act',
  ko: '작업하는 사람의 이름입니다. 작업과 함께 기록됩니다',
})

/** Why. */
export const noteOption: OptionSpec<string | undefined> = text('TEXT', {
  en: 'Why: it is recorded with the act',
  ko: '사유입니다. 작업과 함께 기록됩니다',
})

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
