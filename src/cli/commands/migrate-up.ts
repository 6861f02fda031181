import { type Command, defineCommand } from '../command.ts'
import { withDatabase } from '../with-database.ts'

/** `commitpost migrate up` */
export const migrateUpCommand: Command = defineCommand({
  name: 'migrate up',
  summary: {
    en: 'Creates the tables, or brings them up to date',
    ko: '테이블을 만들거나 최신 버전으로 올립니다',
  },
  details: {
    en: 'All pending steps run in one transaction: all of them, or none. Any number of processes may do it at once.',
    ko: '남은 단계를 한 트랜잭션에서 모두 적용하거나 하나도 적용하지 않습니다. 여러 프로세스가 동시에 실행해도 됩니다.',
  },
  operands: {},
  options: {},
  run: (invocation) =>
    withDatabase(invocation, async (database) => {
      const { terminal, messages, globals } = invocation
      const { schemaVersion, applied } = await database.migrateUp()
      if (globals.json) {
        terminal.printJson({ schema: globals.schema, schemaVersion, applied })
        return 0
      }
      for (const { version, name } of applied) terminal.print(messages.migrate.applied(version, name))
      const { upToDate, migrated } = messages.migrate
      terminal.note((applied.length === 0 ? upToDate : migrated)(globals.schema, schemaVersion))
      return 0
    }),
})
