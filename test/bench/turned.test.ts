import { expect, test } from 'vitest'
import { turned } from '../../bench/support/turned.ts'

const ALL = ['a', 'b', 'c', 'd', 'e']

test('each round begins with another contender and leaves nobody out', () => {
  const rounds = ALL.map((_, round) => turned(ALL, round + 1))
  expect(new Set(rounds.map(([first]) => first))).toEqual(new Set(ALL))
  for (const round of rounds) expect(round.toSorted()).toEqual(ALL)
})

test('nobody comes after the same one in two rounds that follow each other', () => {
  const pairsOf = (round: number): readonly string[] => {
    const order = turned(ALL, round)
    return order.slice(1).map((name, index) => `${order[index]}${name}`)
  }
  for (const round of [1, 2, 3, 4, 5, 6]) {
    expect(pairsOf(round).filter((pair) => pairsOf(round + 1).includes(pair))).toEqual([])
  }
})
