import { NotFoundError } from '../../runtime/errors.ts'
import type { RetentionRun } from '../../store/retention-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { text } from '../option-spec.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost retain status` */
export const retainStatusCommand: Command = defineCommand({
  name: 'retain status',
  summary: {
    en: 'Shows the newest run of each retention policy, and how far it is',
    ko: '보존 정책마다 최근 실행과 진행 상황을 보여 줍니다',
  },
  operands: {},
  options: {
    policy: text('NAME', { en: 'All runs of this policy', ko: '이 정책의 모든 실행' }),
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ retention }) => {
      const { values, globals, terminal } = invocation
      const runs = await retention.status(values.policy)
      if (runs.length === 0 && values.policy !== undefined)
        refuseStranger(values.policy, await retention.status())
      if (globals.json) terminal.printJson({ runs })
      else printRuns(runs, invocation)
      return 0
    }),
})

/** Where others were carried out, silence about this one would read as if none had been. */
function refuseStranger(policy: string, others: readonly RetentionRun[]): void {
  if (others.length === 0) return
  const known = [...new Set(others.map((run) => run.policy))].toSorted()
  const message = `There is no run of a retention policy "${policy}". There are runs of: ${known.join(', ')}.`
  throw new NotFoundError('retention run', policy, { message, known })
}

function printRuns(
  runs: readonly RetentionRun[],
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { columns, none } = messages.retain
  if (runs.length === 0) {
    terminal.note(none)
    return
  }
  const head = [
    { title: columns.policy },
    { title: columns.stream, elastic: true },
    { title: columns.state },
    { title: columns.deleted, align: 'right' as const },
    { title: columns.archived, align: 'right' as const },
    { title: columns.left, align: 'right' as const },
    { title: columns.archive },
    { title: columns.started },
    { title: columns.finished },
  ]
  const rows = runs.map((run) =>
    [
      run.policy,
      run.stream,
      messages.retain.states[stateOf(run)],
      formats.count(run.deleted),
      formats.count(run.archived),
      formats.count(run.awaitingExport + run.unknownType),
      run.archive ?? '-',
      formats.time(run.startedAt),
      run.finishedAt === null ? '-' : formats.time(run.finishedAt),
    ].map(safeLine),
  )
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
}

function stateOf({ finishedAt, superseded }: RetentionRun): 'running' | 'done' | 'superseded' {
  if (superseded) return 'superseded'
  return finishedAt === null ? 'running' : 'done'
}
