import { expect, test } from 'vitest'
import type { Condition } from '../../src/alert/conditions.ts'
import { type AlarmStep, decideAlarms } from '../../src/alert/decide-alarms.ts'
import type { AlarmState } from '../../src/store/alert-store.ts'

const condition: Condition = {
  key: 'dead:mailer',
  rule: 'dead',
  subscription: null,
  value: 11,
  threshold: 10,
}
const COOL_DOWN_MS = 900_000
const at = (minutes: number): Date => new Date(Date.UTC(2026, 0, 1) + minutes * 60_000)

/** What is kept from one look to the next, where every alert reaches somebody or none does. */
class Memory {
  states: readonly AlarmState[] = []

  look(minutes: number, holds: boolean, reached = true): readonly string[] {
    const steps = decideAlarms(holds ? [condition] : [], this.states, {
      now: at(minutes),
      coolDownMs: COOL_DOWN_MS,
    })
    const kept = new Map(this.states.map((state) => [state.key, state]))
    for (const step of steps) this.#keep(step, reached, kept)
    this.states = [...kept.values()]
    return steps.map(({ kind }) => kind).filter((kind) => kind === 'alarm' || kind === 'recovered')
  }

  #keep(step: AlarmStep, reached: boolean, kept: Map<string, AlarmState>): void {
    if (step.kind === 'forget') kept.delete(step.key)
    else if (step.kind === 'keep') kept.set(step.state.key, step.state)
    else if (reached) kept.set(step.ifTold.key, step.ifTold)
    else if (step.kind === 'alarm') kept.set(step.ifNot.key, step.ifNot)
  }
}

test('one alarm while it holds, repeated only after the cool-down, and one notice when it is over', () => {
  const memory = new Memory()
  const told = [0, 1, 2, 14, 15, 16, 29, 30].map((minute) => memory.look(minute, true))
  expect(told).toEqual([['alarm'], [], [], [], ['alarm'], [], [], ['alarm']])
  expect(memory.states).toEqual([
    { key: 'dead:mailer', rule: 'dead', since: at(0), told: true, toldAt: at(30) },
  ])
  expect(memory.look(31, false)).toEqual(['recovered'])
  expect(memory.look(32, false)).toEqual([])
  expect(memory.look(45, false)).toEqual([])
  expect(memory.states).toEqual([])
})

test('a condition that comes and goes is told of once within the cool-down', () => {
  const memory = new Memory()
  expect(memory.look(0, true)).toEqual(['alarm'])
  expect(memory.look(1, false)).toEqual(['recovered'])
  expect(memory.look(2, true)).toEqual([])
  expect(memory.look(3, false)).toEqual([])
  expect(memory.look(4, true)).toEqual([])
  expect(memory.look(15, true)).toEqual(['alarm'])
  expect(memory.states).toMatchObject([{ since: at(4) }])
  expect(memory.look(16, false)).toEqual(['recovered'])
})

test('what nobody could be told is told as soon as somebody can be, with the time since when it holds', () => {
  const memory = new Memory()
  expect(memory.look(0, true, false)).toEqual(['alarm'])
  expect(memory.look(1, true, false)).toEqual(['alarm'])
  expect(memory.look(2, true)).toEqual(['alarm'])
  expect(memory.states).toMatchObject([{ since: at(0), toldAt: at(2) }])
  expect(memory.look(3, false, false)).toEqual(['recovered'])
  expect(memory.look(4, false)).toEqual(['recovered'])
})

test('what nobody was told of ends without a word', () => {
  const memory = new Memory()
  expect(memory.look(0, true, false)).toEqual(['alarm'])
  expect(memory.look(1, false)).toEqual([])
  expect(memory.states).toEqual([])
})

test('without a cool-down it is told of at every look', () => {
  const steps = decideAlarms(
    [condition],
    [{ key: condition.key, rule: 'dead', since: at(0), told: true, toldAt: at(1) }],
    { now: at(1), coolDownMs: 0 },
  )
  expect(steps).toMatchObject([{ kind: 'alarm' }])
})
