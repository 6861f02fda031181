import { displayWidth, pad } from '../runtime/width.ts'
import type { Alert } from './alert.ts'

const WIDTH = 53

/** The alert for people who read a log: a block with a line for each fact. */
export function textBlock({ heading, title, facts, advice }: Alert): string {
  const labelWidth = Math.max(12, ...facts.map(({ label }) => displayWidth(label)))
  const lines = facts.map(({ label, value }) => ` ${pad(label, labelWidth)} : ${value}`)
  return [
    headline(` ${heading} `),
    ` ${title}`,
    ...lines,
    ...(advice === null ? [] : [` ${advice}`]),
    '='.repeat(WIDTH),
  ].join('\n')
}

function headline(text: string): string {
  const left = Math.max(0, Math.floor((WIDTH - displayWidth(text)) / 2))
  const right = Math.max(0, WIDTH - displayWidth(text) - left)
  return '='.repeat(left) + text + '='.repeat(right)
}
