/** A test for names: `*` stands for any run of characters, dots included; everything else for itself. */
export function matchesPattern(pattern: string, name: string): boolean {
  return patternMatcher(pattern)(name)
}

/** As `matchesPattern`, made once for many names. */
export function patternMatcher(pattern: string): (name: string) => boolean {
  const parts = pattern.split('*')
  const head = parts[0] ?? ''
  if (parts.length === 1) return (name) => name === pattern
  const tail = parts[parts.length - 1] ?? ''
  const middle = parts.slice(1, -1)
  return (name) => matchesParts(name, head, middle, tail)
}

// Left-most matches in turn: linear, where a regular expression could be made to backtrack by its name.
function matchesParts(name: string, head: string, middle: readonly string[], tail: string): boolean {
  if (name.length < head.length + tail.length || !name.startsWith(head) || !name.endsWith(tail)) return false
  const end = name.length - tail.length
  let from = head.length
  for (const part of middle) {
    const at = name.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
