import { expect, test } from 'vitest'
import { type DeadRecord, deadLetterTopic, type ReceivedMessage } from '../../src/kafka/index.ts'
import { FakeBroker } from './support.ts'

function dead(message: Omit<ReceivedMessage, 'offset'>, partition = 0): DeadRecord {
  return {
    topic: 'shop.order',
    partition,
    subscription: 'c',
    message: { ...message, offset: '7' },
    event: null,
    failure: { code: 'RECORD_UNREADABLE', message: 'it is no event' },
    attempts: 0,
    failedAt: new Date('2026-05-01T10:00:00.000Z'),
  }
}

test('what partitions set aside at the same time is sent one after the other: no message can take the number of another', async () => {
  const broker = new FakeBroker()
  let underWay = 0
  let most = 0
  broker.answer = async () => {
    underWay += 1
    most = Math.max(most, underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
  }
  const sink = deadLetterTopic({ producer: broker.producer })
  await Promise.all([0, 1, 2, 3].map((n) => sink.setAside(dead({ key: `k-${n}`, value: '{}' }, n))))
  expect([most, broker.written.length, broker.made]).toEqual([1, 4, 1])
  await sink.close?.()
})

test('a message is kept byte for byte, text or not, with no key if it had none', async () => {
  const broker = new FakeBroker()
  const sink = deadLetterTopic({ producer: broker.producer })
  const bytes = Buffer.from([0, 0xc3, 0x28, 0xff])
  const headers = { schema: bytes, tag: ['a', bytes], empty: null }
  await sink.setAside(dead({ key: null, value: bytes, headers }))
  await sink.setAside(dead({ key: bytes, value: 'text' }))
  expect(broker.written).toMatchObject([
    {
      topic: 'shop.order.dead',
      key: null,
      value: bytes,
      headers: {
        schema: bytes,
        tag: ['a', bytes],
        dead_letter_code: 'RECORD_UNREADABLE',
        dead_letter_offset: '7',
      },
    },
    { key: bytes, value: 'text' },
  ])
  await sink.close?.()
})
