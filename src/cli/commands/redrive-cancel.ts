import { type Command, defineCommand } from '../command.ts'
import { noteOption, operatorOption } from '../operator-options.ts'
import { planOperand } from '../redrive-options.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost redrive cancel <plan>` */
export const redriveCancelCommand: Command = defineCommand({
  name: 'redrive cancel',
  summary: {
    en: 'Ends a plan: nothing more of it is delivered again',
    ko: '재처리 계획을 취소합니다. 더 이상 다시 전달하지 않습니다',
  },
  operands: { plan: planOperand },
  options: { operator: operatorOption, note: noteOption },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ redrive }) => {
      const { values, globals, terminal, messages } = invocation
      const { plan, operator, note = '' } = values
      await redrive.cancel(plan, { operator, note })
      if (globals.json) terminal.printJson({ action: 'redrive-cancel', plan, operator, note: note || null })
      else terminal.print(messages.redrive.cancelled(plan, safeLine(operator)))
      return 0
    }),
})
