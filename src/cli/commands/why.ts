import type { SubscriptionReason, WhyReport } from '../../inspect/proof.ts'
import type { Reason } from '../../inspect/reason.ts'
import { sentenceOf } from '../../inspect/reason-texts.ts'
import type { Formats } from '../../runtime/formats.ts'
import { redact } from '../../runtime/redact.ts'
import { displayWidth, pad } from '../../runtime/width.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import type { WhyMessages } from '../messages/proof.ts'
import { required, uuidOfEvent } from '../option-spec.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost why <event>` */
export const whyCommand: Command = defineCommand({
  name: 'why',
  summary: {
    en: 'Says why an event is not delivered yet, for every subscription',
    ko: '이벤트가 아직 전달되지 않은 이유를 구독마다 알려 줍니다',
  },
  details: {
    en: 'Ends with 0 if the event is there or was archived, and with 1 if not: an event whose transaction has not committed cannot be\ntold from one that was never published.',
    ko: '이벤트가 있거나 보관되었으면 0, 없으면 1로 끝납니다. 아직 커밋되지 않은 트랜잭션의 이벤트는 발행되지 않은 것과 구분할 수\n없습니다.',
  },
  operands: {
    event: required(uuidOfEvent('event', { en: 'The id of the event', ko: '이벤트 ID입니다' })),
  },
  options: { config: catalogueOption },
  run: async (invocation) => {
    const { terminal, globals, values } = invocation
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const report = inWords(await database.proofBy(known).why(values.event), invocation)
      if (globals.json) terminal.printJson(report)
      else printReport(report, invocation)
      return report.event === null && report.archived === null ? 1 : 0
    })
  },
})

/** The report in the language of the person, and without what handlers may have thrown of connection strings. */
function inWords(report: WhyReport, { messages, formats }: Invocation<unknown>): WhyReport {
  const subscriptions = report.subscriptions.map(({ subscription, reason }): SubscriptionReason => {
    const redacted = redactedReason(reason)
    return {
      subscription,
      reason: redacted,
      sentence: sentenceOf(redacted, messages.proof.why.reasons, formats),
    }
  })
  return { ...report, subscriptions }
}

function redactedReason(reason: Reason): Reason {
  if (!('errorMessage' in reason) || reason.errorMessage === null) return reason
  return { ...reason, errorMessage: redact(reason.errorMessage) }
}

function archivedText(
  eventId: string,
  { archive, subscriptions, createdAt }: NonNullable<WhyReport['archived']>,
  why: WhyMessages,
  formats: Formats,
): string {
  const [place, names] = [archive === null ? null : safeLine(archive), safeLine(subscriptions.join(', '))]
  return why.archived(eventId, formats.time(createdAt), names, place)
}

function printReport(report: WhyReport, { terminal, messages, formats }: Invocation<unknown>): void {
  const { why } = messages.proof
  const { event, eventId } = report
  if (event === null) {
    terminal.print(
      report.archived === null ? why.unknown(eventId) : archivedText(eventId, report.archived, why, formats),
    )
    for (const { id, subscription, failedAt } of report.letters) {
      terminal.print(why.letterRemains(id, safeLine(subscription), formats.time(failedAt)))
    }
    return
  }
  const aggregate = safeLine(`${event.aggregateType}:${event.aggregateId}`)
  const [type, stream] = [safeLine(event.eventType), safeLine(event.stream)]
  terminal.print(why.event(eventId, type, stream, aggregate, formats.time(event.createdAt)))
  if (report.unmatched) terminal.print(terminal.style('warning', why.unmatched))
  const width = Math.max(...report.subscriptions.map(({ subscription }) => displayWidth(subscription)))
  for (const { subscription, sentence } of report.subscriptions) {
    terminal.print(`${pad(safeLine(subscription), width)}  ${safeLine(sentence)}`)
  }
}
