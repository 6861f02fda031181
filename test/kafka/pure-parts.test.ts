import { describe, expect, test } from 'vitest'
import { Breaker } from '../../src/kafka/breaker.ts'
import { classifySendError } from '../../src/kafka/broker-error.ts'
import { sequenceId } from '../../src/kafka/once-by.ts'
import { sequenceChecker } from '../../src/kafka/sequence-checker.ts'
import { isUuid } from '../../src/runtime/ids.ts'
import { brokerError, event, unreachable } from './support.ts'

describe('a breaker', () => {
  const newBreaker = (told: unknown[] = []): Breaker =>
    new Breaker({ random: () => 0.5, onOpen: (error) => told.push(error) })

  test('lets all go while the destination answers', () => {
    const breaker = newBreaker()
    expect([breaker.waitMs(0), breaker.waitMs(0), breaker.isOpen]).toEqual([0, 0, false])
  })

  test('keeps all away after a failure, then lets one try while the others wait', () => {
    const breaker = newBreaker()
    breaker.failed(1_000, 'down')
    expect(breaker.waitMs(1_000)).toBe(100)
    expect(breaker.waitMs(1_060)).toBe(40)
    expect(breaker.waitMs(1_100)).toBe(0)
    expect(breaker.waitMs(1_100)).toBeGreaterThan(0)
    breaker.answered()
    expect([breaker.waitMs(1_100), breaker.waitMs(1_100)]).toEqual([0, 0])
  })

  test('waits longer after each try that fails, five seconds at most, and is told once per outage', () => {
    const told: unknown[] = []
    const breaker = newBreaker(told)
    const waits = Array.from({ length: 8 }, (_, index) => {
      breaker.failed(0, index)
      return breaker.waitMs(0)
    })
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    expect(told).toEqual([0])
    breaker.answered()
    breaker.failed(0, 'again')
    expect([breaker.waitMs(0), told]).toEqual([100, [0, 'again']])
  })

  test('lets the next one try when the one that was let go gave up', () => {
    const breaker = newBreaker()
    breaker.failed(0, 'down')
    expect(breaker.waitMs(100)).toBe(0)
    breaker.gaveUp(100)
    expect(breaker.waitMs(100)).toBe(0)
  })
})

describe('what a failed send means', () => {
  const exceeded = (cause: Error): Error =>
    Object.assign(new Error(cause.message, { cause }), { name: 'KafkaJSNumberOfRetriesExceeded' })

  test.each([
    ['a broker that cannot be reached', unreachable()],
    ['the same, after tries of the client', exceeded(unreachable())],
    ['replicas that are missing', brokerError(19, 'NOT_ENOUGH_REPLICAS')],
    ['a leader that moves', exceeded(brokerError(6, 'NOT_LEADER_FOR_PARTITION'))],
    ['a producer that lost count', brokerError(45, 'OUT_OF_ORDER_SEQUENCE_NUMBER')],
    ['librdkafka: a message that timed out', Object.assign(new Error('Local'), { code: -192 })],
    ['what the client itself takes for transient', exceeded(new Error('odd'))],
  ])('%s: Kafka is unavailable', (_, error) => {
    expect(classifySendError(error)).toEqual({ kind: 'unavailable' })
  })

  test.each([
    ['MESSAGE_TOO_LARGE', false, brokerError(10, 'MESSAGE_TOO_LARGE')],
    [
      'MESSAGE_TOO_LARGE',
      false,
      Object.assign(new Error('Broker'), { code: 10, type: 'ERR_MSG_SIZE_TOO_LARGE' }),
    ],
    ['UNKNOWN_TOPIC_OR_PARTITION', true, exceeded(brokerError(3, 'UNKNOWN_TOPIC_OR_PARTITION'))],
    ['UNKNOWN_TOPIC_OR_PARTITION', true, Object.assign(new Error('Local'), { code: -188 })],
    ['INVALID_RECORD', false, brokerError(87, 'INVALID_RECORD')],
  ])('%s is a refusal for good', (code, isAboutTopic, error) => {
    expect(classifySendError(error)).toMatchObject({ kind: 'refused', isAboutTopic, failure: { code } })
  })

  test.each([
    ['TOPIC_AUTHORIZATION_FAILED', brokerError(29, 'TOPIC_AUTHORIZATION_FAILED')],
    ['BROKER_REFUSED', new TypeError('headers is not iterable')],
    ['BROKER_REFUSED', null],
  ])('anything else is a failure that counts: %s', (code, error) => {
    expect(classifySendError(error)).toMatchObject({ kind: 'failed', failure: { code } })
  })
})

describe('a sequence checker', () => {
  const numbered = (sequence: number | null, orderingKey = 'k') => ({
    eventId: `e${sequence}`,
    orderingKey,
    sequence,
  })

  test('finds gaps and repeats of each key', () => {
    const found: unknown[] = []
    const checker = sequenceChecker({ onFinding: (finding) => found.push(finding) })
    const kinds = [
      numbered(5),
      numbered(6),
      numbered(6),
      numbered(9),
      numbered(1, 'other'),
      numbered(10),
      numbered(null),
    ].map((each) => checker.check(each).kind)
    expect(kinds).toEqual(['first', 'next', 'repeat', 'gap', 'first', 'next', 'unnumbered'])
    expect(found).toEqual([
      { kind: 'repeat', orderingKey: 'k', eventId: 'e6', sequence: 6, last: 6 },
      { kind: 'gap', orderingKey: 'k', eventId: 'e9', sequence: 9, missingFrom: 7, missingTo: 8 },
    ])
    expect(checker.counts).toEqual({ first: 2, next: 2, repeat: 1, gap: 1, unnumbered: 1 })
    expect([checker.last('k'), checker.last('nobody')]).toEqual([10, null])
  })

  test('expects 1 first where it is told that it sees everything', () => {
    const checker = sequenceChecker({ fromBeginning: true })
    expect(checker.check(numbered(2))).toMatchObject({ kind: 'gap', missingFrom: 1, missingTo: 1 })
  })

  test('a late repeat does not make the next one a gap', () => {
    const checker = sequenceChecker()
    expect([1, 2, 3, 1, 4].map((n) => checker.check(numbered(n)).kind)).toEqual([
      'first',
      'next',
      'next',
      'repeat',
      'next',
    ])
  })

  test('forgets the key that was not seen for the longest time', () => {
    const checker = sequenceChecker({ maxKeys: 2 })
    for (const key of ['a', 'b', 'a', 'c']) checker.check(numbered(1, key))
    expect([checker.last('a'), checker.last('b'), checker.last('c')]).toEqual([1, null, 1])
  })
})

describe('the id of an event by key and sequence', () => {
  test('is a UUID that only the same key and number have', () => {
    const ids = [event(), event({ eventId: 'x' }), event({ sequence: 4 }), event({ orderingKey: 'k' })].map(
      sequenceId,
    )
    expect(ids.every(isUuid)).toBe(true)
    expect(ids[0]).toBe(ids[1])
    expect(new Set(ids).size).toBe(3)
    expect(sequenceId(event({ sequence: null }))).toBe(event().eventId)
  })
})
