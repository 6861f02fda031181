/** Each round begins with another one, so that nobody always comes after the same. */
export function turned<Each>(all: readonly Each[], round: number): readonly Each[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}
