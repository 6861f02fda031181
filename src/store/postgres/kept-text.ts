import type { QuotedSchema } from './identifiers.ts'

/**
 * The text of a statement, put together once for each schema. Long ones are made of many pieces, which the driver would
 * have to join and compare with what it sent before, each time, while an event waits.
 */
export function keptText(build: (schema: QuotedSchema) => string): (schema: QuotedSchema) => string {
  const texts = new Map<QuotedSchema, string>()
  return (schema) => {
    const known = texts.get(schema)
    if (known !== undefined) return known
    const text = build(schema)
    texts.set(schema, text)
    return text
  }
}
