/** A text of metrics, read. */
export interface Exposition {
  /** By what stands before the number: `shop_pending{stream="order"}`. */
  readonly samples: ReadonlyMap<string, number>
  /** The types by name, whether there are samples or not. */
  readonly types: ReadonlyMap<string, string>
}

export function parseExposition(text: string): Exposition {
  const lines = text.split('\n')
  const types = lines.flatMap((line) => {
    const [, name, type] = /^# TYPE (\S+) (\w+)$/.exec(line) ?? []
    return name === undefined || type === undefined ? [] : [[name, type] as const]
  })
  const samples = lines.flatMap((line) => {
    const [, series, value] = /^([^#].*) (\S+)$/.exec(line) ?? []
    return series === undefined || value === undefined ? [] : [[series, Number(value)] as const]
  })
  return { samples: new Map(samples), types: new Map(types) }
}

/** Every name that a query may use: those of a histogram's parts too. */
export function queryNames({ types }: Exposition): ReadonlySet<string> {
  return new Set(
    [...types].flatMap(([name, type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
}
