/**
 * A property of a value that somebody else made: undefined where there is none, and also where reading it throws
 * (a getter, a revoked proxy). What a handler throws can be anything, and reading it must never fail.
 */
export function property(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return undefined
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

/** `instanceof`, but false where even that throws: a proxy may refuse to tell its prototype. */
export function isInstance<Instance>(
  value: unknown,
  type: abstract new (...args: never[]) => Instance,
): value is Instance {
  try {
    return value instanceof type
  } catch {
    return false
  }
}

/** The property if it is text that is not empty, else undefined. */
export function textProperty(value: unknown, key: string): string | undefined {
  const found = property(value, key)
  return typeof found === 'string' && found !== '' ? found : undefined
}
