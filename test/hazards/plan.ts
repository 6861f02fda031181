import type pg from 'pg'
import type { Sent } from './stepping-pool.ts'

/** A node of a plan that was executed, as EXPLAIN writes it. */
export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Parent Relationship'?: string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

type Connection = Pick<pg.Client, 'query'>

const EXPLAIN = 'explain (analyze, buffers, timing off, format json)'

const LIMIT = 2
const LOOK = 7

/** A claim that was sent, with another limit and, where it has one, as many rows to look at. */
export function withLimit({ text, values }: Sent, limit: number): Pick<Sent, 'text' | 'values'> {
  const isLimit = (value: unknown, index: number): boolean =>
    index === LIMIT || (index === LOOK && typeof value === 'number')
  return { text, values: values.map((value, index) => (isLimit(value, index) ? limit : value)) }
}

/** Where the text has its first parameter like this: `${index}` of the values. */
export function parameter(text: string, pattern: RegExp): number {
  const number = pattern.exec(text)?.[1]
  if (number === undefined) throw new Error(`the statement has no ${pattern.source}`)
  return Number(number) - 1
}

/** Executes a statement as it was sent and returns the plan it ran by. What it wrote is rolled back. */
export function explain(
  client: Connection,
  { text, values }: Pick<Sent, 'text' | 'values'>,
): Promise<PlanNode> {
  return inRolledBack(client, async () => toPlan(await client.query(`${EXPLAIN} ${text}`, [...values])))
}

/** Executes a prepared statement by its name. */
export function explainPrepared(
  client: Connection,
  name: string,
  values: readonly unknown[],
): Promise<PlanNode> {
  const literals = values.map(toLiteral).join(', ')
  return inRolledBack(client, async () =>
    toPlan(await client.query(`${EXPLAIN} execute ${name}(${literals})`)),
  )
}

async function inRolledBack<Result>(client: Connection, work: () => Promise<Result>): Promise<Result> {
  await client.query('begin')
  try {
    return await work()
  } finally {
    await client.query('rollback')
  }
}

function toPlan({ rows }: { readonly rows: readonly unknown[] }): PlanNode {
  const [row] = rows as readonly { readonly 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }[]
  const plan = row?.['QUERY PLAN'][0]?.Plan
  if (plan === undefined) throw new Error('EXPLAIN returned no plan')
  return plan
}

function toLiteral(value: unknown): string {
  return Array.isArray(value) ? `'{${value.join(',')}}'` : `'${String(value)}'`
}

/** The plan's nodes, the root first. */
function nodes(plan: PlanNode): readonly PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)]
}

/** How many pages the statement touched. */
export function pages(plan: PlanNode): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
}

/**
 * How many pages were touched to find and lock rows, and not to write them to this table: an update that meets a full page of an index looks
 * up what the entries of that page lead to, as many pages as there are, and when that comes depends on transaction ids.
 */
export function pagesScanned(plan: PlanNode, written: string): number {
  return nodes(plan)
    .filter((node) => node['Node Type'] === 'ModifyTable' && node['Relation Name'] === written)
    .reduce((left, node) => left - pagesWritten(node), pages(plan))
}

/** Without those that brought the rows. */
function pagesWritten(node: PlanNode): number {
  const rows = (node.Plans ?? []).filter((below) => below['Parent Relationship'] === 'Outer')
  return rows.reduce((left, below) => left - pages(below), pages(node))
}

/** How many rows of tables were looked at, whether they passed or not, by the scan that looked at most. */
export function mostRowsScanned(plan: PlanNode): number {
  return mostRows(nodes(plan).filter((node) => node['Relation Name'] !== undefined))
}

/** How many rows any part of it looked at, be they of a table or of what another part had found. */
export function mostRowsRead(plan: PlanNode): number {
  return mostRows(nodes(plan))
}

function mostRows(scans: readonly PlanNode[]): number {
  return Math.max(
    ...scans.map(
      (node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    ),
  )
}

/** The tables that were looked into, in whatever way, by their names. */
export function tablesRead(plan: PlanNode): readonly string[] {
  const read = nodes(plan).filter((node) => node['Actual Loops'] > 0)
  return [...new Set(read.flatMap((node) => node['Relation Name'] ?? []))].toSorted()
}

/** The tables that were read from one end to the other. */
export function seqScans(plan: PlanNode): readonly string[] {
  return nodes(plan)
    .filter((node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0)
    .map((node) => node['Relation Name'] ?? '')
}
