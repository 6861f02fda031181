/** What is wrong with an optional whole number, as a sentence; null if nothing is. */
export function wholeNumberProblem(name: string, value: unknown, least: number, most: number): string | null {
  if (value === undefined) return null
  const isFine = Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most
  return isFine ? null : `${name} must be a whole number from ${least} to ${most}, but is ${shown(value)}`
}

/** What is wrong with an optional choice, as a sentence; null if nothing is. */
export function oneOfProblem(name: string, value: unknown, choices: readonly string[]): string | null {
  if (value === undefined || choices.some((choice) => choice === value)) return null
  return `${name} must be one of ${choices.map((choice) => `'${choice}'`).join(', ')}, but is ${shown(value)}`
}

/** What is wrong with an optional list of patterns, as a sentence; null if nothing is. */
export function patternListProblem(name: string, value: unknown): string | null {
  if (value === undefined) return null
  const isList = Array.isArray(value) && value.length > 0
  const isFine = isList && value.every((pattern) => typeof pattern === 'string' && pattern !== '')
  return isFine ? null : `${name} must be a list of at least one stream name or pattern`
}

/** Options that do not exist, each as a sentence: a misspelt one would otherwise leave the default in force. */
export function unknownOptionProblems(options: object, known: readonly string[]): string[] {
  return Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => `there is no option "${name}"; the options are ${known.join(', ')}`)
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)
}
