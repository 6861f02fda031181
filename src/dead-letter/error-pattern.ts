const LONGEST = 500

// In this order, as in the function outbox_error_pattern of the tables. What a letter is beyond ASCII depends on the
// database's locale there; here nothing beyond it is one, which takes out rather more.
const STEPS: readonly (readonly [RegExp, string])[] = [
  [/^(All \d+ attempts failed, the last|The only attempt failed) with: /u, ''],
  [/"[^"]*"|`[^`]*`/gu, '<value>'],
  [/(^|[^A-Za-z0-9])'[^']*'/gu, '$1<value>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/giu, '<uuid>'],
  [/\b(0x[0-9a-f]+|(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,})\b/giu, '<hex>'],
  [/\d+([.,:]\d+)*/gu, '<n>'],
  [/\s+/gu, ' '],
]

/**
 * What errors of a group have in common, as the tables' `outbox_error_pattern` has it: for a message that is masked,
 * which the database does not know.
 */
export function errorPattern(message: string): string {
  const pattern = STEPS.reduce((text, [found, instead]) => text.replace(found, instead), message)
  return Array.from(pattern.replaceAll(/^ | $/gu, '')).slice(0, LONGEST).join('')
}
