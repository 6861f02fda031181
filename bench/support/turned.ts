/**
 * Each round begins with another one, and every other goes backwards: whoever came after one contender comes after another
 * in the next round.
 */
export function turned<Each>(all: readonly Each[], round: number): readonly Each[] {
  const first = round % all.length
  const [head, ...others] = [all.slice(first, first + 1), all.slice(first + 1), all.slice(0, first)]
  const rest = others.flat()
  return [...(head ?? []), ...(round % 2 === 0 ? rest.toReversed() : rest)]
}
