import { InvalidOptionsError } from '../../runtime/errors.ts'

const GREATEST_ID = 2n ** 63n - 1n

/** Checks the text of an id before it reaches the database: a positive whole number of 64 bits. */
export function rowId(what: string, id: string): string {
  if (/^[1-9]\d{0,18}$/.test(id) && BigInt(id) <= GREATEST_ID) return id
  throw new InvalidOptionsError(what, [`id must be a positive whole number, but is "${id.slice(0, 40)}"`])
}
