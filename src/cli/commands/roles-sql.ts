import { type Command, defineCommand } from '../command.ts'
import { databaseName } from '../option-spec.ts'
import { LONGEST_NAME_BYTES } from '../options.ts'

const DEFAULT_PREFIX = 'commitpost'

/** `commitpost roles sql` */
export const rolesSqlCommand: Command = defineCommand({
  name: 'roles sql',
  summary: {
    en: 'Prints the SQL that makes roles with the fewest rights each part needs',
    ko: '역할마다 필요한 최소 권한만 주는 SQL을 출력합니다',
  },
  operands: {},
  options: {
    prefix: databaseName('NAME', LONGEST_NAME_BYTES - '_publisher'.length, {
      en: `What the names of the roles begin with. Default: ${DEFAULT_PREFIX}`,
      ko: `역할 이름의 접두사입니다. 기본값: ${DEFAULT_PREFIX}`,
    }),
  },
  run: async ({ values, globals, terminal, services }) => {
    const prefix = values.prefix ?? DEFAULT_PREFIX
    const sql = await services.rolesSql({ schema: globals.schema, prefix })
    if (globals.json) terminal.printJson({ schema: globals.schema, prefix, sql })
    else terminal.print(sql.trimEnd())
    return 0
  },
})
