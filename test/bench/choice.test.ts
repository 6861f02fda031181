import { expect, test } from 'vitest'
import { drainScenario } from '../../bench/scenarios/drain.ts'
import { Choice } from '../../bench/support/choice.ts'
import { figuresPath } from '../../bench/support/results-file.ts'

test('contenders are chosen by parts of their names, in any case', () => {
  const choice = new Choice('--contenders', 'queue 500,UNORDERED')
  choice.refuseStrangers(drainScenario.contenders)
  expect(drainScenario.contenders.filter((name) => choice.takes(name))).toEqual([
    'commitpost unordered',
    'graphile-worker localQueue 500, 24 jobs',
    'graphile-worker localQueue 5000, 1000 jobs',
  ])
})

test('no choice takes everything', () => {
  const choice = new Choice('--only', '')
  choice.refuseStrangers(['drain'])
  expect(choice.takesAll).toBe(true)
  expect(choice.takes('drain')).toBe(true)
})

test('a part that is in no name is refused, beside parts that are', () => {
  const choice = new Choice('--only', 'drain, lattency')
  expect(() => choice.refuseStrangers(['drain', 'latency'])).toThrow(
    '--only: lattency is part of no name. There are: drain; latency',
  )
})

test('only a whole run, or what is added to one, is written among the recorded figures', () => {
  const whole = { isFullSize: true, isPart: false, isResumed: false }
  expect(figuresPath('core', whole)).toBe('bench/results/core.json')
  expect(figuresPath('core', { ...whole, isPart: true })).toBe('bench/results/trial.json')
  expect(figuresPath('core', { ...whole, isPart: true, isResumed: true })).toBe('bench/results/core.json')
  expect(figuresPath('core', { ...whole, isFullSize: false })).toBe('bench/results/trial.json')
})
