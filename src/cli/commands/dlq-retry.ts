import { type Command, defineCommand } from '../command.ts'
import { deadLetterOperand, noteOption, operatorOption } from '../operator-options.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost dlq retry <id>` */
export const dlqRetryCommand: Command = defineCommand({
  name: 'dlq retry',
  summary: { en: 'Delivers a dead letter again', ko: '데드 레터를 다시 전달합니다' },
  details: {
    en: 'The delivery starts over with no attempts spent, and the dead letter is resolved. Should it die again, that is\na new dead letter.',
    ko: '시도 횟수 0에서 다시 시작하며 데드 레터는 해결됨이 됩니다. 다시 실패하면 새 데드 레터가 됩니다.',
  },
  operands: { id: deadLetterOperand },
  options: { operator: operatorOption, note: noteOption },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ deadLetters, subscriptions }) => {
      const { values, globals, terminal, messages } = invocation
      const { id, operator, note = '' } = values
      const { subscription, eventId } = await deadLetters.show(id)
      await deadLetters.retry(id, { operator, note })
      await subscriptions.notifyWorkers()
      if (globals.json)
        terminal.printJson({ action: 'retry', id, subscription, eventId, operator, note: note || null })
      else {
        terminal.print(messages.deadLetters.retried(id, safeLine(subscription), safeLine(operator)))
        terminal.note(messages.deadLetters.seeWhy(eventId))
      }
      return 0
    }),
})
