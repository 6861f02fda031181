import { resolve } from 'node:path'
import { textProperty } from '../../runtime/property.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { readTextFile } from '../files.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { deadLetterOperand, noteOption, operatorOption } from '../operator-options.ts'
import { text } from '../option-spec.ts'
import { usageError } from '../parse.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** More than a payload may have, so that it is refused by its own limit, and little enough to be read. */
const MOST_BYTES = 16 * 1_048_576

/** `commitpost dlq amend <id>` */
export const dlqAmendCommand: Command = defineCommand({
  name: 'dlq amend',
  summary: {
    en: 'Delivers a dead letter again with another payload',
    ko: '데드 레터를 다른 페이로드로 다시 전달합니다',
  },
  details: {
    en: 'The event itself stays as it is. A new event that names it takes its place: for its subscription only, and\nbefore what waits behind it.',
    ko: '원래 이벤트는 바뀌지 않습니다. 원래 이벤트를 가리키는 새 이벤트가 그 구독에서만 자리를 대신하며,\n뒤에서 기다리던 이벤트보다 먼저 전달됩니다.',
  },
  operands: { id: deadLetterOperand },
  options: {
    payload: text('JSON', { en: 'The whole payload', ko: '페이로드 전체입니다' }),
    'payload-file': text('FILE', {
      en: 'A file with the whole payload as JSON',
      ko: '페이로드 전체가 JSON으로 든 파일입니다',
    }),
    operator: operatorOption,
    note: noteOption,
    config: catalogueOption,
  },
  run: async (invocation) => {
    const { values, globals, terminal, messages } = invocation
    const payload = await readPayload(values, invocation)
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const { id, operator, note = '' } = values
      const deadLetters = database.deadLettersBy(known)
      const { subscription, eventId: amendedFrom } = await deadLetters.show(id)
      const { eventId } = await deadLetters.amend(id, payload, { operator, note })
      await database.subscriptions.notifyWorkers()
      if (globals.json) {
        terminal.printJson({
          action: 'amend',
          id,
          subscription,
          amendedFrom,
          eventId,
          operator,
          note: note || null,
        })
      } else {
        terminal.print(messages.care.amended(id, eventId, safeLine(subscription), safeLine(operator)))
        terminal.note(messages.deadLetters.seeWhy(eventId))
        if (known === undefined) terminal.note(messages.care.notChecked)
      }
      return 0
    })
  },
})

interface PayloadValues {
  readonly payload: string | undefined
  readonly 'payload-file': string | undefined
}

async function readPayload(
  { payload, 'payload-file': file }: PayloadValues,
  { messages: { care }, process }: Invocation<unknown>,
): Promise<unknown> {
  if (payload !== undefined && file !== undefined) throw usageError([care.onePayload], 'dlq amend')
  if (payload === undefined && file === undefined) throw usageError([care.needsPayload], 'dlq amend')
  const given = payload ?? (await readTextFile(resolve(process.cwd, file ?? ''), MOST_BYTES))
  try {
    return JSON.parse(given) as unknown
  } catch (error) {
    throw usageError([care.payloadNotJson(textProperty(error, 'message') ?? '')], 'dlq amend')
  }
}
