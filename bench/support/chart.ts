// The chart for the README: plain SVG, readable on light and dark pages.
import type { Results } from './results.ts'
import type { Scenario } from './scenario.ts'

const WIDTH = 860
const LABEL_WIDTH = 330
const ROW = 24
const TITLE = 34
const PANEL_GAP = 18
const CURVE_HEIGHT = 150
const OURS = '#1f6feb'
const OTHERS = '#9aa4b2'
const TEXT = '#24292f'

interface Point {
  readonly label: string
  readonly value: number
}

interface Panel {
  readonly height: number
  readonly body: string
}

/** A chart of what was measured: the drains, and how the rate changes with processes and backlog. */
export function drawChart(results: Results, scenarios: readonly Scenario[], caption: string): string {
  // In the order of the scenario: rounds begin with another contender each, and the first would not be the first of a curve.
  const pointsOf = (scenario: string): readonly Point[] =>
    scenarios
      .filter(({ name }) => name === scenario)
      .flatMap(({ contenders }) => contenders)
      .map((label) => ({ label, value: results.median(scenario, label, 'perSecond') ?? Number.NaN }))
      .filter(({ value }) => !Number.isNaN(value))
  const panels = [
    barPanel(`Backlog worked off by one process, ${caption}`, pointsOf('drain')),
    curvePanel('Commitpost: worker processes', pointsOf('scaling')),
    curvePanel('Commitpost: length of the backlog', pointsOf('backlog')),
  ].filter((panel) => panel !== undefined)
  let top = 12
  const placed = panels.map(({ height, body }) => {
    const group = `<g transform="translate(0 ${top})">${body}</g>`
    top += height + PANEL_GAP
    return group
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" font-family="system-ui, sans-serif" font-size="13" fill="${TEXT}">
<rect width="100%" height="100%" rx="8" fill="#ffffff"/>
${placed.join('\n')}
</svg>
`
}

function barPanel(title: string, points: readonly Point[]): Panel | undefined {
  if (points.length === 0) return undefined
  const sorted = points.toSorted((a, b) => b.value - a.value)
  const scale = (WIDTH - LABEL_WIDTH - 110) / (sorted[0]?.value ?? 1)
  const rows = sorted.map(({ label, value }, index) => {
    const y = TITLE + index * ROW
    const colour = label.startsWith('commitpost') ? OURS : OTHERS
    const end = LABEL_WIDTH + value * scale
    return (
      text(LABEL_WIDTH - 10, y + 14, label, 'text-anchor="end"') +
      `<rect x="${LABEL_WIDTH}" y="${y + 2}" width="${round(value * scale)}" height="${ROW - 8}" rx="3" fill="${colour}"/>` +
      text(round(end) + 8, y + 14, perSecond(value))
    )
  })
  return { height: TITLE + sorted.length * ROW, body: heading(title) + rows.join('') }
}

function curvePanel(title: string, points: readonly Point[]): Panel | undefined {
  if (points.length === 0) return undefined
  const largest = Math.max(...points.map(({ value }) => value))
  const step = (WIDTH - 160) / Math.max(1, points.length - 1)
  const placed = points.map(({ label, value }, index) => ({
    x: round(80 + index * step),
    y: round(TITLE + 20 + (CURVE_HEIGHT - 70) * (1 - value / largest)),
    label: label.slice(label.indexOf(',') + 1).trim(),
    value,
  }))
  const line = placed.map(({ x, y }) => `${x},${y}`).join(' ')
  const dots = placed.map(
    ({ x, y, label, value }) =>
      `<circle cx="${x}" cy="${y}" r="4" fill="${OURS}"/>` +
      text(x, y - 10, perSecond(value), 'text-anchor="middle"') +
      text(x, TITLE + CURVE_HEIGHT - 20, label, 'text-anchor="middle"'),
  )
  const curve = `<polyline points="${line}" fill="none" stroke="${OURS}" stroke-width="2"/>`
  return { height: TITLE + CURVE_HEIGHT, body: heading(title) + curve + dots.join('') }
}

function heading(title: string): string {
  return text(16, 18, title, 'font-weight="600"')
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`
}

function perSecond(value: number): string {
  return `${Math.round(value).toLocaleString('en')}/s`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
