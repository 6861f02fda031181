import {
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../../runtime/option-checks.ts'
import { type QuotedSchema, quoteSchema } from './identifiers.ts'
import { tendPartitionsSql } from './tend-partitions.ts'

/** As many days as a period may have. */
export const LONGEST_PERIOD_DAYS = 90

/** Says where the first period begins, and that nothing later may come in. Answers whether there is more to do. */
export const prepareSql = (schema: QuotedSchema, everyDays: number): string =>
  `select ${schema}.outbox_prepare_partitions(${everyDays})`

/** Reads the tables through, while everybody goes on. */
export const validateSqls = (schema: QuotedSchema): readonly string[] => [
  `select ${schema}.outbox_validate_partitions('outbox_event')`,
  `select ${schema}.outbox_validate_partitions('outbox_delivery')`,
]

/** Puts the partitioned tables above the plain ones. Answers false where it has to be prepared again. */
export const convertSql = (schema: QuotedSchema): string => `select ${schema}.outbox_convert_to_partitions()`

/** What to print. */
export interface PartitionSqlOptions {
  /** The schema's name, as it is: quoting is done here. */
  readonly schema: string
  /**
   * How many days a period has, 1 to 90.
   * @default 1
   */
  readonly everyDays?: number
}

/**
 * What `partitionTables` does, as statements for psql. Each is a transaction of its own: run them one by one. One that
 * gets no lock in time (SQLSTATE 55P03) has done nothing, and can be run again.
 */
export function partitionSql(options: PartitionSqlOptions): string {
  refuseProblems('partitionSql', [recordProblem('the argument', options)])
  const { everyDays = 1 } = options
  refuseProblems('partitionSql', [
    ...unknownOptionProblems(options, ['schema', 'everyDays']),
    wholeNumberProblem('everyDays', everyDays, 1, LONGEST_PERIOD_DAYS),
  ])
  const schema = quoteSchema(options.schema)
  const statements = [
    prepareSql(schema, everyDays),
    ...validateSqls(schema),
    convertSql(schema),
    tendPartitionsSql(schema),
  ]
  return [
    '-- Commitpost: time partitions. Not in one transaction: each statement commits before the next one.',
    '-- One that ends with SQLSTATE 55P03 has changed nothing and may be run again. The fourth must answer t; otherwise',
    '-- begin again with the first.',
    ...statements.map((statement) => `${statement};`),
    '',
  ].join('\n')
}
