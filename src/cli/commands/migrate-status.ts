import { type Command, defineCommand, type Invocation } from '../command.ts'
import type { MigrationComparison } from '../services.ts'
import { renderTable } from '../text/table.ts'
import { withDatabase } from '../with-database.ts'

/** `commitpost migrate status` */
export const migrateStatusCommand: Command = defineCommand({
  name: 'migrate status',
  summary: {
    en: 'Compares the tables with what this program needs',
    ko: '테이블 버전을 이 프로그램이 요구하는 버전과 비교합니다',
  },
  details: {
    en: 'Ends with 0 if the schema is current and with 1 if it is not, so that scripts can ask.',
    ko: '스키마가 최신이면 0, 아니면 1로 끝나므로 스크립트에서 확인할 수 있습니다.',
  },
  operands: {},
  options: {},
  run: (invocation) =>
    withDatabase(invocation, async (database) => {
      const { terminal, globals } = invocation
      const comparison = await database.compareMigrations()
      if (globals.json) terminal.printJson({ schema: globals.schema, ...toJson(comparison) })
      else printComparison(comparison, invocation)
      return comparison.state === 'current' ? 0 : 1
    }),
})

function toJson({ state, schemaVersion, codeVersion, applied, pending }: MigrationComparison): object {
  const steps = applied.map(({ version, name, appliedAt }) => ({ version, name, appliedAt }))
  return { state, schemaVersion, codeVersion, applied: steps, pending }
}

function printComparison(comparison: MigrationComparison, invocation: Invocation<unknown>): void {
  const { terminal, messages, formats, globals } = invocation
  const { state, schemaVersion, codeVersion, applied, pending } = comparison
  const { migrate } = messages
  const row = (version: number, name: string, at: string): readonly string[] => [
    String(version).padStart(4, '0'),
    name,
    at,
  ]
  const rows = [
    ...applied.map(({ version, name, appliedAt }) => row(version, name, formats.time(appliedAt))),
    ...pending.map(({ version, name }) => row(version, name, migrate.pending)),
  ]
  const columns = [
    { title: migrate.columns.version },
    { title: migrate.columns.name },
    { title: migrate.columns.applied },
  ]
  for (const line of renderTable(columns, rows, terminal.table)) terminal.print(line)
  const shown = terminal.style(state === 'current' ? 'good' : 'warning', migrate.states[state])
  terminal.note(`${migrate.versions(globals.schema, schemaVersion, codeVersion)} ${shown}`)
  if (state !== 'current') terminal.note(migrate.advice[state])
}
