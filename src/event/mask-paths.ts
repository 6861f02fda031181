const INDEX = /^\d+$/

/** A copy of the value with `mask` at every one of the paths; what lies beside them is shared with the original. */
export function maskPaths(value: unknown, paths: readonly string[], mask: unknown): unknown {
  return paths.reduce((masked, path) => maskAt(masked, path.split('.'), mask), value)
}

function maskAt(value: unknown, path: readonly string[], mask: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return mask
  if (Array.isArray(value)) return maskInArray(value, key, path, mask)
  if (typeof value !== 'object' || value === null) return value
  if (key === '*') return mapMembers(value, () => true, rest, mask)
  return Object.hasOwn(value, key) ? mapMembers(value, (name) => name === key, rest, mask) : value
}

function maskInArray(
  items: readonly unknown[],
  key: string,
  path: readonly string[],
  mask: unknown,
): unknown {
  if (key === '*') return items.map((item) => maskAt(item, path.slice(1), mask))
  if (!INDEX.test(key)) return items.map((item) => maskAt(item, path, mask))
  return items.map((item, index) => (index === Number(key) ? maskAt(item, path.slice(1), mask) : item))
}

// Through entries, not by assignment: a key "__proto__" stays a key.
function mapMembers(
  value: object,
  isMeant: (name: string) => boolean,
  rest: readonly string[],
  mask: unknown,
): unknown {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isMeant(name) ? maskAt(member, rest, mask) : member,
    ]),
  )
}
