import { type Command, defineCommand } from '../command.ts'
import { noteOption, operatorOption, subscriptionOperand } from '../operator-options.ts'
import { keyOperand } from '../redrive-options.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost move-aside <subscription> <key>` */
export const moveAsideCommand: Command = defineCommand({
  name: 'move-aside',
  summary: {
    en: 'Frees a blocked key: what waits on it becomes dead letters, new events are delivered',
    ko: '막힌 키를 풀어 줍니다. 기다리던 이벤트는 데드 레터가 되고 새 이벤트는 전달됩니다',
  },
  details: {
    en: 'Nothing is lost: redrive plan --key KEY delivers them again later, in order.',
    ko: '잃는 것은 없습니다. 나중에 redrive plan --key KEY로 순서대로 다시 전달할 수 있습니다.',
  },
  operands: { subscription: subscriptionOperand, key: keyOperand },
  options: { operator: operatorOption, note: noteOption },
  run: (invocation) =>
    withReadyDatabase(invocation, async (database) => {
      const { values, globals, terminal, messages, formats } = invocation
      const { subscription, key, operator, note = '' } = values
      const { moved, free } = await database.moveAside(subscription, key, { operator, note })
      await database.subscriptions.notifyWorkers()
      if (globals.json) {
        terminal.printJson({
          action: 'move-aside',
          subscription,
          key,
          moved,
          free,
          operator,
          note: note || null,
        })
        return free ? 0 : 1
      }
      const { movedAside, notFree } = messages.redrive
      const count = formats.count(moved)
      if (!free) {
        terminal.note(terminal.style('warning', notFree(count)))
        return 1
      }
      terminal.print(movedAside(safeLine(subscription), safeLine(key), count, safeLine(operator)))
      return 0
    }),
})
