import type { VerifyOptions } from '../../inspect/verify-options.ts'
import type { SubscriptionProof, VerifyReport } from '../../store/proof-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { type OptionSpec, text, type ValuesOf, wholeNumber } from '../option-spec.ts'
import { pointInTime, refuseReversed } from '../point-in-time.ts'
import { safeLine } from '../text/safe.ts'
import { type Column, renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

const MOST = 10_000
const KINDS = ['missing', 'surplus', 'impossible'] as const

interface VerifyCliOptions extends Readonly<Record<string, OptionSpec<unknown>>> {
  readonly since: OptionSpec<Date | undefined>
  readonly until: OptionSpec<Date | undefined>
  readonly subscription: OptionSpec<string | undefined>
  readonly limit: OptionSpec<number | undefined>
}

const options: VerifyCliOptions = {
  since: pointInTime('TIME', {
    en: 'Only events published at or after it: 2026-01-31, 2026-01-31T12:00Z, or 24h for 24 hours ago',
    ko: '이 시각 이후에 발행된 이벤트만: 2026-01-31, 2026-01-31T12:00Z, 24h(24시간 전)',
  }),
  until: pointInTime('TIME', {
    en: 'Only events published before it',
    ko: '이 시각 전에 발행된 이벤트만',
  }),
  subscription: text('NAME', { en: 'Only this subscription', ko: '이 구독만' }),
  limit: wholeNumber(
    'N',
    { least: 0, most: MOST },
    {
      en: `Name at most this many events of each kind, up to ${MOST}. Default: 20`,
      ko: `종류마다 표시할 최대 이벤트 수(${MOST} 이하)입니다. 기본값: 20`,
    },
  ),
}

/** `commitpost verify` */
export const verifyCommand: Command = defineCommand({
  name: 'verify',
  summary: {
    en: 'Proves for every subscription that no event is lost, or names those that are',
    ko: '모든 구독에서 잃어버린 이벤트가 없음을 증명하거나, 있으면 그 ID를 보여 줍니다',
  },
  details: {
    en: 'MATCHED are the events that a subscription is meant to have. All numbers are of one instant, also while events are\npublished and delivered. Ends with 0 if every equation holds and with 3 if one does not.',
    ko: '대상은 구독이 받아야 하는 이벤트입니다. 발행과 전달이 진행 중이어도 모든 숫자는 한 시점의 것입니다.\n모든 등식이 성립하면 0, 하나라도 성립하지 않으면 3으로 끝납니다.',
  },
  operands: {},
  options,
  run: async (invocation) => {
    const { terminal, globals, values } = invocation
    const asked = optionsOf(values, invocation)
    return withReadyDatabase(invocation, async ({ proof }) => {
      const report = await proof.verify(asked)
      if (globals.json) terminal.printJson({ schema: globals.schema, ...report })
      else printReport(report, invocation)
      return report.holds ? 0 : 3
    })
  },
})

function optionsOf(
  { since, until, subscription, limit }: ValuesOf<VerifyCliOptions>,
  invocation: Invocation<unknown>,
): VerifyOptions {
  refuseReversed({ from: since, to: until, names: ['--since', '--until'] }, 'verify', invocation)
  return {
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(subscription === undefined ? {} : { subscription }),
    ...(limit === undefined ? {} : { limit }),
  }
}

function printReport(report: VerifyReport, invocation: Invocation<unknown>): void {
  const { terminal, messages, formats } = invocation
  const { verify } = messages.proof
  if (report.subscriptions.length === 0) {
    terminal.note(messages.status.noSubscriptions)
    return
  }
  const hasStreamed = report.subscriptions.some(({ streamed }) => streamed > 0)
  const rows = report.subscriptions.map((proof) => rowOf(proof, invocation, hasStreamed))
  for (const line of renderTable(columnsOf(invocation, hasStreamed), rows, terminal.table))
    terminal.print(line)
  for (const proof of report.subscriptions) printExceptions(proof, invocation)
  const verdict = verify.verdict(report.holds, formats.time(report.at))
  terminal.note(terminal.style(report.holds ? 'good' : 'bad', verdict))
}

function columnsOf({ messages }: Invocation<unknown>, hasStreamed: boolean): readonly Column[] {
  const { columns } = messages.proof.verify
  const number = (title: string): Column => ({ title, align: 'right' })
  return [
    { title: columns.subscription, elastic: true },
    number(columns.matched),
    number(columns.done),
    number(columns.pending),
    number(columns.processing),
    number(columns.dead),
    number(columns.archived),
    ...(hasStreamed ? [number(columns.streamed)] : []),
    { title: '' },
  ]
}

function rowOf(
  proof: SubscriptionProof,
  { messages, formats, terminal }: Invocation<unknown>,
  hasStreamed: boolean,
): readonly string[] {
  const state = messages.proof.verify.states[proof.state]
  const { counts, streamed } = proof
  return [
    `${safeLine(proof.subscription)}${state === null ? '' : ` (${state})`}`,
    ...[
      proof.matched,
      counts.DONE,
      counts.PENDING,
      counts.PROCESSING,
      counts.DEAD,
      proof.archived,
      ...(hasStreamed ? [streamed] : []),
    ].map(formats.count),
    proof.holds ? terminal.style('good', '✓') : terminal.style('bad', '✗'),
  ]
}

function printExceptions(
  proof: SubscriptionProof,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { verify } = messages.proof
  const name = safeLine(proof.subscription)
  if (proof.state === 'removed') terminal.print(`\n${terminal.style('bad', verify.removed(name))}`)
  for (const kind of KINDS) {
    const { count, eventIds } = proof[kind]
    if (count === 0) continue
    terminal.print(`\n${terminal.style('bad', verify.exceptions[kind](name, formats.count(count)))}`)
    for (const eventId of eventIds) terminal.print(`  ${eventId}`)
    const rest = count - eventIds.length
    if (rest > 0) terminal.print(`  ${verify.notAllNamed(formats.count(rest))}`)
  }
  if (proof.awaited > 0) {
    const told = proof.state === 'joining' ? verify.awaited : verify.unread
    terminal.note(terminal.style('warning', told(name, formats.count(proof.awaited))))
  }
}
