import type { SubscriptionStatus } from '../../store/inspect-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { safeLine } from '../text/safe.ts'
import { type Column, renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost status` */
export const statusCommand: Command = defineCommand({
  name: 'status',
  summary: {
    en: 'Shows how every subscription stands',
    ko: '모든 구독의 상태를 보여 줍니다',
  },
  details: {
    en: 'RETRYING are those of PENDING that failed or were given back at least once. DEAD counts deliveries,\nUNRESOLVED the dead letters that wait for a person. Events that wait in the log are among PENDING after ten seconds,\nand are counted up to 100,000: a plus sign says that there may be more.',
    ko: '재시도 예정은 대기 중 가운데 한 번 이상 실패했거나 되돌아온 전달입니다. 데드는 전달 수이고,\n미해결은 사람의 결정을 기다리는 데드 레터 수입니다. 로그에서 기다리는 이벤트는 10초가 지나면 대기 중에 포함되고,\n10만 건까지만 셉니다. 더하기 기호는 더 있을 수 있다는 뜻입니다.',
  },
  operands: {},
  options: {},
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ subscriptions: operations }) => {
      const events = await operations.countEvents()
      const subscriptions = await operations.subscriptionStatuses()
      const { terminal, globals } = invocation
      if (globals.json) terminal.printJson({ schema: globals.schema, events, subscriptions })
      else printStatus(events, subscriptions, invocation)
      return 0
    }),
})

function printStatus(
  events: number,
  subscriptions: readonly SubscriptionStatus[],
  invocation: Invocation<unknown>,
): void {
  const { terminal, messages, formats } = invocation
  terminal.print(messages.status.events(formats.count(events)))
  if (subscriptions.length === 0) {
    terminal.note(messages.status.noSubscriptions)
    return
  }
  const rows = subscriptions.map((subscription) => rowOf(subscription, invocation))
  for (const line of renderTable(columnsOf(invocation), rows, terminal.table)) terminal.print(line)
  for (const { name, waitsFor } of subscriptions) {
    if (waitsFor === null) continue
    const holder = { pid: waitsFor.pid, name: waitsFor.name === null ? null : safeLine(waitsFor.name) }
    const age = waitsFor.seconds === null ? null : formats.age(waitsFor.seconds)
    terminal.note(terminal.style('warning', messages.status.joiningWaits(safeLine(name), holder, age)))
  }
  const open = subscriptions.reduce((sum, subscription) => sum + subscription.unresolvedDeadLetters, 0)
  if (open > 0) terminal.note(terminal.style('warning', messages.status.deadLettersWait(formats.count(open))))
}

function columnsOf({ messages }: Invocation<unknown>): readonly Column[] {
  const { columns } = messages.status
  const number = (title: string): Column => ({ title, align: 'right' })
  return [
    { title: columns.subscription, elastic: true },
    { title: columns.state },
    { title: columns.order },
    number(columns.pending),
    number(columns.processing),
    number(columns.retrying),
    number(columns.done),
    number(columns.dead),
    number(columns.oldest),
    number(columns.open),
  ]
}

function rowOf(
  subscription: SubscriptionStatus,
  { messages, formats }: Invocation<unknown>,
): readonly string[] {
  const { status } = messages
  const { counts, oldestPendingSeconds: oldest } = subscription
  const state = status.states[subscription.state]
  return [
    safeLine(subscription.name),
    subscription.paused ? `${state}, ${status.paused}` : state,
    status.orders[subscription.orderBy] ?? safeLine(subscription.orderBy),
    formats.count(counts.PENDING) + (subscription.pendingCapped ? '+' : ''),
    formats.count(counts.PROCESSING),
    formats.count(subscription.retrying),
    formats.count(counts.DONE),
    formats.count(counts.DEAD),
    oldest === null ? '-' : formats.age(oldest),
    formats.count(subscription.unresolvedDeadLetters),
  ]
}
