const MOST_EDITS = 2
const LONGEST_NAME = 100

/** The candidate that was probably meant, or null when none is near. */
export function suggest(given: string, candidates: readonly string[]): string | null {
  // Comparing costs the product of the lengths; nobody misspells a name into a text of a megabyte.
  if (given.length > LONGEST_NAME) return null
  const text = given.toLowerCase()
  const extended =
    text.length >= 2 ? candidates.find((candidate) => candidate.toLowerCase().startsWith(text)) : undefined
  if (extended !== undefined) return extended
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(text, candidate.toLowerCase()) }))
    // Two edits make any two short words equal: at most a third of the letters may differ.
    .filter(({ candidate, edits }) => edits <= Math.min(MOST_EDITS, Math.ceil(candidate.length / 3)))
    .toSorted((one, other) => one.edits - other.edits)
  return ranked[0]?.candidate ?? null
}

/** How many letters have to be added, removed, replaced or swapped with their neighbour to get from one to the other. */
export function editsBetween(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)]
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= other.length; column += 1) {
      const cost = one[row - 1] === other[column - 1] ? 0 : 1
      const swapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const cell = (r: number, c: number): number =>
        (r === row ? current : (rows[r] as number[]))[c] as number
      current[column] = Math.min(
        cell(row - 1, column) + 1,
        cell(row, column - 1) + 1,
        cell(row - 1, column - 1) + cost,
        swapped ? cell(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    rows.push(current)
  }
  return (rows[one.length] as number[])[other.length] as number
}
