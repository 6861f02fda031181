import { describe, expect, test } from 'vitest'
import type { DeadRecord, ReceivedMessage, SequenceChecker } from '../../src/kafka/index.ts'
import { toMessage } from '../../src/kafka/record.ts'
import { received, setUp } from './consumer-support.ts'
import { event } from './support.ts'

const good = toMessage(event(), 'o-1', 'payload')

/** Hands these over, with one that is good behind them. */
async function consume(messages: readonly Omit<ReceivedMessage, 'offset'>[], sequence?: SequenceChecker) {
  const dead: DeadRecord[] = []
  let handled = 0
  const { consumer, clients, told } = setUp({
    on: () => {
      handled += 1
    },
    setAside: async (record) => void dead.push(record),
    ...(sequence === undefined ? {} : { sequence }),
  })
  await consumer.start()
  const batch = received([...messages, good])
  await clients[0]?.each(batch)
  await consumer.stop()
  return { dead, handled, told, resolved: batch.resolved }
}

describe('messages of other writers', () => {
  test.each([
    ['is no JSON', { ...good, value: Buffer.from([0, 0, 0, 0, 7, 0xc3, 0x28]) }, 'its value is no JSON'],
    ['is text', { ...good, value: 'card 4111' }, 'its value is no JSON'],
    ['has no headers', { key: 'o-1', value: '{}' }, 'no event id'],
    ['has an id that is none', { ...good, headers: { ...good.headers, eventId: '7' } }, 'no event id'],
    ['says no type', { ...good, headers: { eventId: event().eventId } }, 'no event type'],
  ])(
    'a message that %s is told of and set aside, and those behind it are handled',
    async (_, message, why) => {
      const { dead, handled, told, resolved } = await consume([message])
      expect(dead).toMatchObject([{ failure: { code: 'RECORD_UNREADABLE' }, attempts: 0, event: null }])
      expect(dead[0]?.message.value).toBe(message.value)
      const errors = told.filter(({ kind }) => kind === 'error')
      expect(errors).toMatchObject([{ during: 'reading a message', error: { code: 'RECORD_UNREADABLE' } }])
      expect(dead[0]?.failure.message).toContain(why)
      // It goes to log lines, where payloads never are.
      expect(dead[0]?.failure.message).not.toContain('4111')
      expect([handled, resolved]).toEqual([1, ['0', '1']])
    },
  )

  test('one without a value says that there is nothing any more: nobody is told and nothing is set aside', async () => {
    const { dead, handled, told, resolved } = await consume([{ ...good, value: null }])
    expect([dead, handled, resolved]).toEqual([[], 1, ['0', '1']])
    expect(told.filter(({ kind }) => kind !== 'handled')).toEqual([])
  })

  test('one without a key is an event of no aggregate, if it names none', async () => {
    const { aggregateId: _, ...headers } = good.headers
    const { told, handled } = await consume([{ key: null, value: good.value, headers }])
    expect(handled).toBe(2)
    expect(told[0]).toMatchObject({ kind: 'handled', event: { aggregateId: '' } })
  })
})

test('whoever verifies the sequence cannot hold messages up', async () => {
  const sequence: SequenceChecker = {
    check: () => {
      throw new Error('the page of gaps is full')
    },
    counts: { first: 0, next: 0, repeat: 0, gap: 0, unnumbered: 0 },
    last: () => null,
  }
  const { handled, told, resolved } = await consume([good], sequence)
  expect([handled, resolved]).toEqual([2, ['0', '1']])
  const errors = told.filter(({ kind }) => kind === 'error')
  expect(errors).toMatchObject([
    { during: 'checking the sequence', error: { message: 'the page of gaps is full' } },
    { during: 'checking the sequence' },
  ])
})
