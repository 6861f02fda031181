/** A label and its value. */
export type Label = readonly [name: string, value: string]

/** One line of figures. */
export interface Sample {
  /** What stands behind the family's name: `_bucket`, `_sum` and `_count` of a histogram, else nothing. */
  readonly suffix: string
  readonly labels: readonly Label[]
  readonly value: number
}

/** All samples of one metric. The name is without the prefix. */
export interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** What the text is: Prometheus' text format, which every version of it reads. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The families in Prometheus' text format, their names with the prefix. */
export function expose(prefix: string, families: readonly Family[]): string {
  return families.map((family) => exposeFamily(`${prefix}_${family.name}`, family)).join('')
}

function exposeFamily(name: string, { type, help, samples }: Family): string {
  const lines = samples.map(
    ({ suffix, labels, value }) => `${name}${suffix}${exposeLabels(labels)} ${exposeNumber(value)}\n`,
  )
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function exposeLabels(labels: readonly Label[]): string {
  if (labels.length === 0) return ''
  return `{${labels.map(([name, value]) => `${name}="${escapeValue(value)}"`).join(',')}}`
}

function exposeNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

// Whatever a stream or a type is called, it must not end the line or its own quotes.
function escapeValue(text: string): string {
  return text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
