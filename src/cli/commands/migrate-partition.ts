import { type Command, defineCommand } from '../command.ts'
import { days, flag } from '../option-spec.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost migrate partition` */
export const migratePartitionCommand: Command = defineCommand({
  name: 'migrate partition',
  summary: {
    en: 'Divides the tables of events and deliveries by time, while they are in use',
    ko: '이벤트와 전달 테이블을 사용 중인 채로 기간별 파티션으로 나눕니다',
  },
  details: {
    en:
      'Retention then drops whole periods instead of deleting their rows. Needs the rights of the owner of the tables. ' +
      'May be interrupted and run again; on tables that are partitioned already it makes the next periods.',
    ko:
      '보존 정책이 행을 지우는 대신 기간 전체를 한 번에 제거할 수 있게 됩니다. 테이블 소유자 권한이 필요합니다. ' +
      '중단해도 다시 실행하면 이어서 하며, 이미 나뉘어 있으면 다음 기간의 파티션을 만듭니다.',
  },
  operands: {},
  options: {
    every: days(
      'DAYS',
      { least: 1, most: 90 },
      {
        en: 'How long a period is, in days: 1d to 90d. Default: 1d',
        ko: '한 기간의 길이(일)입니다. 1d부터 90d까지. 기본값: 1d',
      },
    ),
    sql: flag({
      en: 'Only print the SQL. Needs no database',
      ko: 'SQL만 출력합니다. 데이터베이스가 필요 없습니다',
    }),
  },
  run: async (invocation) => {
    const { values, globals, terminal, services, messages } = invocation
    const everyDays = values.every ?? 1
    if (values.sql) {
      const sql = await services.partitionSql({ schema: globals.schema, everyDays })
      if (globals.json) terminal.printJson({ schema: globals.schema, everyDays, sql })
      else terminal.print(sql.trimEnd())
      return 0
    }
    return withReadyDatabase(invocation, async (database) => {
      const report = await database.partitionTables(everyDays)
      if (globals.json) {
        terminal.printJson({ schema: globals.schema, ...report })
        return 0
      }
      const { partitioned, madeAhead } = messages.migrate
      if (report.converted) terminal.print(partitioned(globals.schema, day(report.restUntil)))
      terminal.note(madeAhead(report.everyDays, day(report.madeUntil)))
      return 0
    })
  },
})

function day(date: Date): string {
  return date.toISOString().slice(0, 'yyyy-mm-dd'.length)
}
