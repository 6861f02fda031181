/** One step down into a JSON value, linked upwards so that walking costs nothing until a path is to be shown. */
export interface JsonStep {
  readonly parent: JsonStep | null
  readonly key: string | number
}

const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/
const LONGEST_SHOWN_KEY = 80

/** `payload.items[3]["odd key"]` */
export function jsonPath(keys: readonly (string | number)[], root = 'payload'): string {
  return root + keys.map(stepText).join('')
}

/** The path of a step, from the root of its chain. */
export function stepPath(step: JsonStep | null, root = 'payload'): string {
  const keys: (string | number)[] = []
  for (let at = step; at !== null; at = at.parent) keys.unshift(at.key)
  return jsonPath(keys, root)
}

function stepText(key: string | number): string {
  if (typeof key === 'number' || key === '*') return `[${key}]`
  if (key.length <= LONGEST_SHOWN_KEY && PLAIN_KEY.test(key)) return `.${key}`
  // A key may be as long as the payload and hold anything: JSON's escapes make it printable, the cut readable.
  return `[${JSON.stringify(key.slice(0, LONGEST_SHOWN_KEY))}]`
}
