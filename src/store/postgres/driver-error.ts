import { property, textProperty } from '../../runtime/property.ts'
import { sqlState } from '../../runtime/sql-state.ts'

/** What the server said about a statement it refused, whichever client passed it on. */
export interface DriverError {
  /** The SQLSTATE. */
  readonly code: string
  readonly message: string
  readonly hint: string | null
  /** Null where the server kept it back: it tells no values to a role that may not read them. */
  readonly detail: string | null
  readonly constraint: string | null
}

const LONGEST_CAUSE_CHAIN = 5

/**
 * Finds the server's answer in an error. Object mappers wrap it: as `cause` (Drizzle, MikroORM), `driverError`
 * (TypeORM) or `meta` (Prisma).
 */
export function driverErrorOf(error: unknown): DriverError | null {
  let candidate: unknown = error
  for (let depth = 0; depth < LONGEST_CAUSE_CHAIN; depth += 1) {
    const found = asDriverError(candidate) ?? asDriverError(property(candidate, 'meta'))
    if (found !== null) return found
    candidate = property(candidate, 'cause') ?? property(candidate, 'driverError')
    if (candidate === undefined || candidate === null) return null
  }
  return null
}

function asDriverError(error: unknown): DriverError | null {
  const code = sqlState(error)
  if (code === null) return null
  return {
    code,
    message: textProperty(error, 'message') ?? '',
    hint: textProperty(error, 'hint') ?? null,
    detail: textProperty(error, 'detail') ?? null,
    constraint: textProperty(error, 'constraint') ?? textProperty(error, 'constraint_name') ?? null,
  }
}
