import { type Command, defineCommand } from '../command.ts'
import { noteOption, operatorOption, subscriptionOperand } from '../operator-options.ts'
import { flag } from '../option-spec.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost retire <subscription>` */
export const retireCommand: Command = defineCommand({
  name: 'retire',
  summary: {
    en: 'Ends a subscription that no code has any more',
    ko: '더 이상 쓰지 않는 구독을 종료합니다',
  },
  details: {
    en: 'Refused while a live worker serves it and while it has deliveries that are not done. Its name can be given again,\nto a subscription that begins anew.',
    ko: '살아 있는 워커가 처리 중이거나 끝나지 않은 전달이 있으면 거부합니다. 같은 이름은 새로 시작하는 구독에 다시 쓸 수\n있습니다.',
  },
  operands: { subscription: subscriptionOperand },
  options: {
    operator: operatorOption,
    note: noteOption,
    discard: flag({
      en: 'Set open deliveries aside: each is kept as a dead letter that is resolved',
      ko: '끝나지 않은 전달을 해결된 데드 레터로 남기고 종료합니다',
    }),
    force: flag({
      en: 'Although a live worker serves it',
      ko: '살아 있는 워커가 처리 중이어도 종료합니다',
    }),
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ subscriptions }) => {
      const { values, globals, terminal, messages, formats } = invocation
      const { subscription, operator, note = '', discard, force } = values
      const report = await subscriptions.retireSubscription(subscription, { operator, note, discard, force })
      if (globals.json) {
        terminal.printJson({ action: 'retire', subscription, ...report, operator, note: note || null })
        return 0
      }
      const { wasRetired, lettersStay, lockedStay } = messages.status
      terminal.print(wasRetired(safeLine(subscription), safeLine(operator), formats.count(report.discarded)))
      const { unresolvedDeadLetters: unresolved, locked } = report
      if (locked > 0) terminal.note(terminal.style('warning', lockedStay(formats.count(locked))))
      if (unresolved > 0) terminal.note(terminal.style('warning', lettersStay(formats.count(unresolved))))
      return 0
    }),
})
