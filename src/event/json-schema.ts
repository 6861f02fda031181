/** A JSON Schema node. */
export type SchemaNode = Readonly<Record<string, unknown>>

const LONGEST_REF_CHAIN = 16

/** The node as an object: `true` is any value, `false` and anything unreadable is none. */
export function nodeOf(value: unknown): SchemaNode {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  return value === true || value === undefined ? {} : { not: {} }
}

/** The list, or none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Where a node points, or empty. */
export function refOf(value: unknown): string {
  const ref = nodeOf(value)['$ref']
  return typeof ref === 'string' ? ref : ''
}

/** The alternatives a node stands for, with references followed: one, unless it is a union. */
export function variantsOf(root: SchemaNode, value: unknown): readonly SchemaNode[] {
  const node = followed(root, value)
  const branches = [...listOf(node['anyOf']), ...listOf(node['oneOf'])]
  if (branches.length > 0) return branches.flatMap((branch) => variantsOf(root, branch))
  const types = listOf(node['type'])
  return types.length > 0 ? types.map((type) => ({ ...node, type })) : [node]
}

function followed(root: SchemaNode, value: unknown): SchemaNode {
  let node = nodeOf(value)
  for (let step = 0; refOf(node) !== '' && step < LONGEST_REF_CHAIN; step += 1) {
    node = nodeOf(lookedUp(root, refOf(node)))
  }
  return node
}

/** References inside the same document: `#`, `#/$defs/Money`. Others cannot be followed, and count as any value. */
function lookedUp(root: SchemaNode, ref: string): unknown {
  if (!ref.startsWith('#')) return {}
  const keys = ref
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.reduce<unknown>((node, key) => nodeOf(node)[key], root)
}

/** The one type of a node that is no union: `string`, `object`, or `anything` where it says none. */
export function typeOf(node: SchemaNode): string {
  if (typeof node['type'] === 'string') return node['type']
  const values = 'const' in node ? [node['const']] : listOf(node['enum'])
  if (values.length > 0) return [...new Set(values.map(typeOfValue))].toSorted().join(' or ')
  if (node['properties'] !== undefined) return 'object'
  return node['not'] === undefined ? 'anything' : 'nothing'
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** The values a node is limited to, as JSON; null when it is not. */
export function valuesOf(node: SchemaNode): readonly string[] | null {
  if ('const' in node) return [JSON.stringify(node['const'])]
  const values = node['enum']
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : null
}

/** What tells this alternative from others: its values, or its type and the fields with one value (`kind: "card"`). */
export function labelOf(node: SchemaNode): string {
  const values = valuesOf(node)
  if (values !== null) return values.join(' or ')
  const fixed = Object.entries(nodeOf(node['properties'])).flatMap(([name, schema]) => {
    const only = valuesOf(nodeOf(schema))
    return only?.length === 1 ? [`${name}: ${only[0]}`] : []
  })
  return fixed.length === 0 ? typeOf(node) : `${typeOf(node)} with ${fixed.toSorted().join(', ')}`
}

/** Whether an object schema demands a field. */
export function requires(node: SchemaNode, field: string): boolean {
  return listOf(node['required']).includes(field)
}
