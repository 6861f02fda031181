import {
  recordProblem,
  refuseProblems,
  textProblem,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import { quoteIdentifier, quoteSchema } from './identifiers.ts'
import { fillInNames, readSqlFile } from './migration-files.ts'

/** Which roles to print. */
export interface RolesSqlOptions {
  /** The schema's name, as it is: quoting is done here. */
  readonly schema: string
  /**
   * What the roles' names begin with. Roles belong to the whole server: give every installation that must be kept
   * apart from the others a prefix of its own.
   * @default 'commitpost'
   */
  readonly prefix?: string
}

/**
 * SQL that creates four group roles, `<prefix>_publisher`, `_worker`, `_operator` and `_viewer`, where they are missing,
 * and grants each the least rights its job needs. To be run by the owner of the tables after every migration.
 */
export async function rolesSql(options: RolesSqlOptions): Promise<string> {
  refuseProblems('rolesSql', [recordProblem('the argument', options)])
  const { schema, prefix = 'commitpost' } = options
  refuseProblems('rolesSql', [
    ...unknownOptionProblems(options, ['schema', 'prefix']),
    textProblem('prefix', prefix),
  ])
  const role = (job: string): string => quoteIdentifier(`${prefix}_${job}`)
  return fillInNames(await readSqlFile('roles.sql'), {
    schema: quoteSchema(schema),
    publisher: role('publisher'),
    worker: role('worker'),
    operator: role('operator'),
    viewer: role('viewer'),
  })
}
