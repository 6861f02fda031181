const SPECIAL = /["\\]/g

/** An array of texts as PostgreSQL reads it. It holds no NULL: under `array_nulls = off` that would be read as a word. */
export function arrayLiteral<Item>(items: readonly Item[], textOf: (item: Item) => string): string {
  return `{${items.map((item) => `"${textOf(item).replaceAll(SPECIAL, String.raw`\$&`)}"`).join(',')}}`
}
