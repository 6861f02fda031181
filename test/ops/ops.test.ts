import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { prometheusMetrics } from '../../src/inspect/prometheus-metrics.ts'
import type { Gauges } from '../../src/store/gauge-store.ts'
import { someEvent } from '../dispatch/support.ts'
import { newEvent } from '../store/postgres/fixtures.ts'
import { parseExposition, queryNames } from '../support/exposition.ts'
import { findPromtool, promtool } from '../support/promtool.ts'
import { available } from '../support/servers.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const read = (path: string): string => readFileSync(pathOf(path), 'utf8')
const DASHBOARD = 'ops/grafana/commitpost.json'
const RULES = 'ops/prometheus/rules.yaml'

const GAUGES: Gauges = {
  backlog: [{ subscription: 'a', stream: 's', pending: 1, held: 1, processing: 1, oldestPendingSeconds: 1 }],
  deadLetters: [{ subscription: 'a', stream: 's "\\\n', eventType: 'T', count: 1 }],
  subscriptions: [{ subscription: 'a', state: 'active', paused: false, workers: 1 }],
  tables: [{ table: 'outbox_event', bytes: 1, estimatedRows: 1, removedRows: 1 }],
  oldestEventSeconds: 1,
  capped: false,
}

/** All metrics, each with at least one sample. */
async function everyMetric(): Promise<string> {
  const metrics = prometheusMetrics({ store: { readGauges: () => Promise.resolve(GAUGES) } })
  const about = { subscription: 'a', event: someEvent(), attempt: 1, maxAttempts: 5 }
  const failure = { code: 'X', message: 'x' }
  metrics.published([newEvent()])
  metrics.observer({
    kind: 'claimed',
    subscription: 'a',
    count: 1,
    suspects: 0,
    durationMs: 1,
    deliveries: [],
  })
  metrics.observer({ kind: 'handled', durationMs: 1, ...about })
  metrics.observer({ kind: 'dead', failure, durationMs: 1, ...about })
  metrics.observer({ kind: 'leaseLost', ...about })
  metrics.observer({ kind: 'released', why: 'interrupted', delayMs: 0, ...about })
  metrics.observer({ kind: 'finishedLate', after: 'timeout', succeeded: true, durationMs: 1, ...about })
  metrics.observer({ kind: 'recovered', subscription: 'a', count: 1, suspects: 0, dead: 0 })
  metrics.observer({ kind: 'unmatched', event: someEvent() })
  metrics.observer({ kind: 'error', during: 'claim', error: null, subscription: null })
  return metrics.render()
}

/** The metrics that a text of queries names. */
function namedIn(text: string): ReadonlySet<string> {
  return new Set(text.replaceAll('${prefix}_', 'commitpost_').match(/commitpost_[a-z_]+/g))
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

describe('the dashboard and the alert rules', () => {
  test('U9 D8 name only metrics that there are, and leave hardly one unused', async () => {
    const emitted = queryNames(parseExposition(await everyMetric()))
    const used = new Set([...namedIn(read(DASHBOARD)), ...namedIn(read(RULES))])
    expect(used.size).toBeGreaterThan(25)
    expect([...used].filter((name) => !emitted.has(name))).toEqual([])
    const families = [...parseExposition(await everyMetric()).types.keys()]
    const unused = families.filter((family) => ![...used].some((name) => name.startsWith(family)))
    expect(unused.toSorted()).toEqual([
      'commitpost_collection_duration_seconds',
      'commitpost_subscription_dead',
      'commitpost_subscription_oldest_pending_seconds',
      'commitpost_subscription_processing',
      'commitpost_workers_running',
    ])
  })

  test('U9 the dashboard has a query in every panel, a place of its own for each, and a variable for the prefix', () => {
    const dashboard = JSON.parse(read(DASHBOARD)) as {
      readonly uid: string
      readonly panels: readonly (Panel & { readonly type: string; readonly id: number })[]
      readonly templating: { readonly list: readonly { readonly name: string }[] }
    }
    expect(dashboard.uid).toBe('commitpost-outbox')
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'prefix', 'job'])
    const panels = dashboard.panels.filter(({ type }) => type !== 'row')
    expect(panels.filter(({ targets = [] }) => targets.length === 0)).toEqual([])
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    expect(read(DASHBOARD)).not.toContain('commitpost_')
  })
})

describe.skipIf(!available('promtool (of the package prometheus)', findPromtool() !== null))(
  'promtool',
  () => {
    test('U9 L7 takes the alert rules, and they fire when they should and not otherwise', async () => {
      const checked = await promtool(['check', 'rules', pathOf(RULES)])
      expect(checked).toMatchObject({ code: 0 })
      expect(checked.output).toContain('SUCCESS: 13 rules found')
      expect(await promtool(['test', 'rules', pathOf('test/ops/rules-test.yaml')])).toMatchObject({ code: 0 })
    })

    test('E14 takes the metrics, and objects to nothing but the name of a label, which is the one asked for', async () => {
      const { code, output } = await promtool(['check', 'metrics'], await everyMetric())
      const objections = output.split('\n').filter((line) => line !== '' && !line.includes('camelCase'))
      expect(objections).toEqual([])
      expect([0, 3]).toContain(code)
    })

    test('refuses a text that is none, so that it would be noticed', async () => {
      expect(await promtool(['check', 'metrics'], 'commitpost_pending{stream="a} 1\n')).toMatchObject({
        code: 1,
      })
    })

    test('takes every query of the dashboard', async () => {
      const { panels } = JSON.parse(read(DASHBOARD)) as { readonly panels: readonly Panel[] }
      const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
      const rules = queries.map((query, index) => {
        const expr = query.replaceAll('${prefix}', 'commitpost').replaceAll('$__rate_interval', '5m')
        return { record: `q:${index}`, expr }
      })
      const directory = await mkdtemp(join(tmpdir(), 'commitpost-rules-'))
      const file = join(directory, 'dashboard.yaml')
      await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
      const { code, output } = await promtool(['check', 'rules', file])
      await rm(directory, { recursive: true })
      expect({ code, output }).toMatchObject({ code: 0 })
      expect(output).toContain(`${queries.length} rules found`)
    })
  },
)
