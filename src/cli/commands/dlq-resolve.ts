import { LONGEST_NOTE } from '../../runtime/operator-act.ts'
import { type Command, defineCommand } from '../command.ts'
import { deadLetterOperand, operatorOption } from '../operator-options.ts'
import { atMost, requiredText } from '../option-spec.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost dlq resolve <id>` */
export const dlqResolveCommand: Command = defineCommand({
  name: 'dlq resolve',
  summary: {
    en: 'Settles a dead letter by hand: it is not delivered again',
    ko: '데드 레터를 직접 해결합니다. 다시 전달하지 않습니다',
  },
  details: {
    en: 'In an ordered subscription, the events that wait behind it go on.',
    ko: '순서가 있는 구독에서는 뒤에서 기다리던 이벤트가 이어서 전달됩니다.',
  },
  operands: { id: deadLetterOperand },
  options: {
    operator: operatorOption,
    note: atMost(
      LONGEST_NOTE,
      requiredText('TEXT', {
        en: 'How it was settled: it is recorded with the act',
        ko: '어떻게 해결했는지입니다. 작업과 함께 기록됩니다',
      }),
    ),
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ deadLetters, subscriptions }) => {
      const { values, globals, terminal, messages } = invocation
      const { id, operator, note } = values
      await deadLetters.resolve(id, { operator, note })
      await subscriptions.notifyWorkers()
      if (globals.json) terminal.printJson({ action: 'resolve', id, operator, note })
      else terminal.print(messages.deadLetters.resolved(id, safeLine(operator)))
      return 0
    }),
})
