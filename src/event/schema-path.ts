import { listOf, type SchemaNode } from './json-schema.ts'

const DEEPEST_SEARCH = 64

/**
 * Whether a path can exist in values of a JSON Schema. Says yes wherever the schema leaves it open: only a path that
 * certainly names nothing is worth an error.
 */
export function schemaHasPath(root: object, path: readonly string[]): boolean {
  return hasPath({ ...root }, { ...root }, path, DEEPEST_SEARCH)
}

function hasPath(root: SchemaNode, schema: unknown, path: readonly string[], depthLeft: number): boolean {
  if (path.length === 0 || depthLeft === 0 || schema === true) return true
  const node = asNode(schema)
  if (node === null) return false
  const down = (next: unknown, rest: readonly string[]): boolean => hasPath(root, next, rest, depthLeft - 1)
  if (node['$ref'] !== undefined) return node['$ref'] !== '#' || down(root, path)
  const branches = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => listOf(node[key]))
  if (branches.some((branch) => down(branch, path))) return true
  const elements = [node['items'], ...listOf(node['prefixItems'])].filter((element) => element !== undefined)
  if (
    elements.some((element) => down(element, isIndex(path[0]) ? path.slice(1) : path) || down(element, path))
  ) {
    return true
  }
  if (saysNothing(node)) return true
  return inProperties(node, path, down)
}

function inProperties(
  node: SchemaNode,
  [key = '', ...rest]: readonly string[],
  down: (next: unknown, rest: readonly string[]) => boolean,
): boolean {
  const properties = asNode(node['properties'])
  const others = node['additionalProperties']
  // `{ type: 'object' }` alone is any object.
  if (properties === null && others === undefined) return node['type'] === 'object'
  const open = others === undefined || others === false ? [] : [others]
  if (key === '*') return [...Object.values(properties ?? {}), ...open].some((next) => down(next, rest))
  if (properties !== null && Object.hasOwn(properties, key)) return down(properties[key], rest)
  return node['patternProperties'] !== undefined || open.some((next) => down(next, rest))
}

function saysNothing(node: SchemaNode): boolean {
  return !['type', 'properties', 'additionalProperties', 'anyOf', 'oneOf', 'allOf', 'enum', 'const'].some(
    (key) => node[key] !== undefined,
  )
}

function isIndex(segment: string | undefined): boolean {
  return segment === '*' || /^\d+$/.test(segment ?? '')
}

function asNode(value: unknown): SchemaNode | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
}
