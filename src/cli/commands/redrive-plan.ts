import { MOST_PLANNED_IDS, type RedriveFilter, type RedrivePlan } from '../../store/redrive-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { type FilterOptions, filterOptions } from '../letter-filter.ts'
import { type OptionSpec, text, type ValuesOf } from '../option-spec.ts'
import { pointInTime, refuseReversed } from '../point-in-time.ts'
import { rowNumbers } from '../redrive-options.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

interface PlanOptions extends Readonly<Record<string, OptionSpec<unknown>>> {
  readonly subscription: OptionSpec<string | undefined>
  readonly stream: OptionSpec<string | undefined>
  readonly type: OptionSpec<string | undefined>
  readonly reason: FilterOptions['reason']
  readonly error: OptionSpec<string | undefined>
  readonly fingerprint: FilterOptions['fingerprint']
  readonly key: OptionSpec<string | undefined>
  readonly 'failed-from': OptionSpec<Date | undefined>
  readonly 'failed-to': OptionSpec<Date | undefined>
  readonly ids: OptionSpec<readonly string[] | undefined>
}

const options: PlanOptions = {
  subscription: text('NAME', { en: 'Only those of this subscription', ko: '이 구독의 것만' }),
  stream: text('NAME', { en: 'Only events of this stream', ko: '이 스트림의 이벤트만' }),
  type: text('TYPE', { en: 'Only events of this type', ko: '이 유형의 이벤트만' }),
  reason: filterOptions.reason,
  error: text('CODE', { en: 'Only those with this error code', ko: '이 오류 코드만' }),
  fingerprint: filterOptions.fingerprint,
  key: text('KEY', { en: 'Only those of this ordering key', ko: '이 순서 키의 것만' }),
  'failed-from': pointInTime('TIME', {
    en: 'Only those that failed then or later',
    ko: '이 시각 이후에 실패한 것만',
  }),
  'failed-to': pointInTime('TIME', {
    en: 'Only those that failed before then',
    ko: '이 시각 전에 실패한 것만',
  }),
  ids: rowNumbers(MOST_PLANNED_IDS, { en: 'Only these, by number', ko: '이 번호들만' }),
}

/** `commitpost redrive plan` */
export const redrivePlanCommand: Command = defineCommand({
  name: 'redrive plan',
  summary: {
    en: 'Plans which dead letters to deliver again, and shows what that would do',
    ko: '다시 전달할 데드 레터를 계획하고 결과를 미리 보여 줍니다',
  },
  details: {
    en: 'Nothing is delivered before the plan is applied. It can be applied for a day.',
    ko: '계획을 적용하기 전에는 아무것도 전달하지 않습니다. 하루 안에 적용할 수 있습니다.',
  },
  operands: {},
  options,
  run: async (invocation) => {
    const { values, globals, terminal } = invocation
    const filter = filterOf(values)
    const { failedFrom: from, failedTo: to } = filter
    refuseReversed({ from, to, names: ['--failed-from', '--failed-to'] }, 'redrive plan', invocation)
    return withReadyDatabase(invocation, async ({ redrive }) => {
      const plan = await redrive.plan(filter)
      if (globals.json) terminal.printJson(plan)
      else printPlan(plan, invocation)
      return 0
    })
  },
})

function filterOf(values: ValuesOf<PlanOptions>): RedriveFilter {
  const { subscription, stream, type: eventType, reason, error: errorCode, fingerprint } = values
  const { key: orderingKey, ids } = values
  const { 'failed-from': failedFrom, 'failed-to': failedTo } = values
  return {
    ...(subscription === undefined ? {} : { subscription }),
    ...(stream === undefined ? {} : { stream }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(reason === undefined ? {} : { reason }),
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(failedFrom === undefined ? {} : { failedFrom }),
    ...(failedTo === undefined ? {} : { failedTo }),
    ...(ids === undefined ? {} : { ids }),
  }
}

function printPlan(plan: RedrivePlan, invocation: Invocation<unknown>): void {
  const { terminal, messages, formats } = invocation
  const { redrive } = messages
  terminal.print(redrive.planned(plan.id, formats.count(plan.letters)))
  const counts = ({ letters, reordered }: { readonly letters: number; readonly reordered: number }) =>
    [formats.count(letters), formats.count(reordered)] as const
  const { columns } = redrive
  printTable(
    invocation,
    [columns.subscription],
    plan.subscriptions.map((each) => [each.subscription, ...counts(each)]),
  )
  printTable(
    invocation,
    [columns.event],
    plan.eventTypes.map((each) => [each.eventType, ...counts(each)]),
  )
  printTable(
    invocation,
    [columns.subscription, columns.key],
    plan.keys.map((each) => [each.subscription, each.orderingKey, ...counts(each)]),
  )
  if (plan.keyCount > plan.keys.length)
    terminal.note(redrive.moreKeys(formats.count(plan.keys.length), formats.count(plan.keyCount)))
  const warn = (line: string): void => terminal.note(terminal.style('warning', line))
  if (plan.reordered > 0) warn(redrive.reordered(formats.count(plan.reordered)))
  if (plan.unreachable > 0) warn(redrive.unreachable(formats.count(plan.unreachable)))
  terminal.note(redrive.whatNext(plan.id, formats.time(plan.expiresAt)))
}

/** What is counted, how many dead letters of it, and how many of those are too late. */
function printTable(
  { terminal, messages }: Invocation<unknown>,
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  if (rows.length === 0) return
  const { letters, reordered } = messages.redrive.columns
  const head = [
    ...titles.map((title) => ({ title })),
    { title: letters, align: 'right' as const },
    { title: reordered, align: 'right' as const },
  ]
  terminal.print('')
  const safe = rows.map((row) => row.map(safeLine))
  for (const line of renderTable(head, safe, terminal.table)) terminal.print(line)
}
