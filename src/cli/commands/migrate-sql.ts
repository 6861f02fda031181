import { type Command, defineCommand } from '../command.ts'
import { wholeNumber } from '../option-spec.ts'
import { usageError } from '../parse.ts'

/** `commitpost migrate sql` */
export const migrateSqlCommand: Command = defineCommand({
  name: 'migrate sql',
  summary: {
    en: 'Prints the SQL of the migration, for psql, Flyway and other tools',
    ko: 'psql, Flyway 등 다른 도구에서 쓸 마이그레이션 SQL을 출력합니다',
  },
  details: {
    en: 'Needs no database. The script includes the bookkeeping: afterwards "migrate status" finds the schema current.',
    ko: '데이터베이스가 필요 없습니다. 버전 기록까지 포함하므로 적용 후 "migrate status"는 최신으로 표시됩니다.',
  },
  operands: {},
  options: {
    from: wholeNumber(
      'VERSION',
      { least: 0, most: 9_999 },
      {
        en: 'The version the database is at: only later steps are printed. Default: 0',
        ko: '데이터베이스의 현재 버전입니다. 이후 단계만 출력합니다. 기본값: 0',
      },
    ),
  },
  run: async ({ values, globals, terminal, messages, services }) => {
    const from = values.from ?? 0
    const latest = await services.latestVersion()
    if (from > latest) {
      throw usageError([messages.usage.mustBeWholeNumber('--from', 0, latest, String(from))], 'migrate sql')
    }
    const sql = await services.migrationSql({ schema: globals.schema, from })
    if (globals.json) terminal.printJson({ schema: globals.schema, from, sql })
    else terminal.print(sql.trimEnd())
    return 0
  },
})
