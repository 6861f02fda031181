import { expect, test } from 'vitest'
import { checkHistory, type HandledEvent, overtakenBy, type PublishedEvent } from './history.ts'

const committed: readonly PublishedEvent[] = [
  { eventId: 'a0', key: 'a', seq: 0 },
  { eventId: 'a1', key: 'a', seq: 1 },
  { eventId: 'a2', key: 'a', seq: 2 },
  { eventId: 'b0', key: 'b', seq: 0 },
]

function handled(...eventIds: readonly string[]): readonly HandledEvent[] {
  return eventIds.map((eventId) => ({
    eventId,
    key: eventId.slice(0, 1),
    seq: Number(eventId.slice(1)),
    worker: 'w',
  }))
}

test('a history in which every event is handled once and in order has nothing wrong', () => {
  expect(checkHistory(committed, handled('a0', 'b0', 'a1', 'a2'))).toEqual({
    lost: [],
    phantoms: [],
    inversions: [],
    duplicates: [],
  })
})

test('what is missing, made up, out of order or repeated is named', () => {
  expect(checkHistory(committed, handled('a1', 'a1', 'a0', 'b9', 'a2'))).toEqual({
    lost: ['b0'],
    phantoms: ['b9'],
    inversions: ['a: 0 after 1 (w)'],
    duplicates: ['a1'],
  })
})

test('only the first time counts for the order: a late repetition is no inversion', () => {
  expect(checkHistory(committed, handled('a0', 'a1', 'a0', 'a2', 'b0', 'a1')).inversions).toEqual([])
})

test('an event that comes again has to bring those along that were handled after it', () => {
  expect(overtakenBy(handled('a0', 'a1', 'a0', 'a1', 'b0', 'a2'))).toEqual([])
  expect(overtakenBy(handled('a0', 'a1', 'b0', 'a0'))).toEqual(['a: 0 after 1 (w)'])
  expect(overtakenBy(handled('a0', 'a1', 'a2', 'a0', 'a1'))).toEqual(['a: 0 after 2 (w)', 'a: 1 after 2 (w)'])
})
