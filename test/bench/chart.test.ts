import { expect, test } from 'vitest'
import { backlogScenario } from '../../bench/scenarios/own-drains.ts'
import { drawChart } from '../../bench/support/chart.ts'
import { Results } from '../../bench/support/results.ts'

test('a curve goes from the smallest to the largest, whoever was measured first', () => {
  const samples = backlogScenario.contenders
    .toReversed()
    .map((contender) => ({ scenario: 'backlog', contender, round: 1, figures: { perSecond: 1_000 } }))
  const chart = drawChart(new Results(samples), [backlogScenario], 'a machine')
  expect([...chart.matchAll(/>(\w+) backlog</g)].map(([, length]) => length)).toEqual([
    '1k',
    '10k',
    '100k',
    '1M',
  ])
})
