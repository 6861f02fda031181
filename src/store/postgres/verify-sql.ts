import type { QuotedSchema } from './identifiers.ts'

/**
 * Whether a delivery is in a state that it cannot have come to by claims and settlements. Of a row that has
 * `status`, `held` and `is_untried`: that no attempt was ever made.
 */
export const impossible = (row: string): string =>
  `case ${row}.status when 'PENDING' then not ${row}.held and not ${row}.is_untried
        when 'DEAD' then false else ${row}.is_untried end`

/** Whether a row of `outbox_delivery` is in hand by a claim that is not written down: nobody would ever return it. */
export const unleased = (schema: QuotedSchema, row: string): string =>
  `case when ${row}.status = 'PROCESSING' then not exists (
          select from ${schema}.outbox_lease l
           where l.subscription_id = ${row}.subscription_id and l.token = ${row}.lease_token)
        else false end`

/** Values of a statement that are added as its text is put together. */
export class StatementValues {
  readonly #values: unknown[]

  constructor(values: readonly unknown[]) {
    this.#values = [...values]
  }

  get all(): readonly unknown[] {
    return this.#values
  }

  /** Adds a text and returns how the statement reads it. */
  add(value: string, type: string): string {
    this.#values.push(value)
    return `$${this.#values.length}::text::${type}`
  }
}
