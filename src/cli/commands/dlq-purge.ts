import { LONGEST_AGE } from '../../runtime/duration.ts'
import { type Command, defineCommand } from '../command.ts'
import { noteOption, operatorOption } from '../operator-options.ts'
import { duration, required, text } from '../option-spec.ts'
import { refuseStranger } from '../refuse-stranger.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost dlq purge` */
export const dlqPurgeCommand: Command = defineCommand({
  name: 'dlq purge',
  summary: {
    en: 'Removes dead letters that were resolved long ago',
    ko: '오래전에 해결된 데드 레터를 삭제합니다',
  },
  details: {
    en: 'Those that wait for a person are never touched. It works in batches and may be broken off at any time.',
    ko: '결정을 기다리는 것은 건드리지 않습니다. 나누어 삭제하므로 언제든지 멈출 수 있습니다.',
  },
  operands: {},
  options: {
    'older-than': required(
      duration(
        'TIME',
        {
          en: 'How long ago they must have been resolved: 90d',
          ko: '해결된 지 얼마나 지난 것인지입니다. 예: 90d',
        },
        LONGEST_AGE,
      ),
    ),
    subscription: text('NAME', { en: 'Only those of this subscription', ko: '이 구독의 것만' }),
    operator: operatorOption,
    note: noteOption,
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async (database) => {
      const { values, globals, terminal, messages, formats } = invocation
      const { 'older-than': olderThan, subscription, operator, note = '' } = values
      const { purged } = await database.deadLetters.purge(
        { olderThan, ...(subscription === undefined ? {} : { subscription }) },
        { operator, note },
      )
      if (purged === 0) await refuseStranger(subscription, database)
      if (globals.json) {
        terminal.printJson({
          action: 'purge',
          purged,
          subscription: subscription ?? null,
          operator,
          note: note || null,
        })
      } else if (purged === 0) terminal.note(messages.care.nothingPurged)
      else terminal.print(messages.care.purged(formats.count(purged), safeLine(operator)))
      return 0
    }),
})
