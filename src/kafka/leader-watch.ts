import type { KafkaProducer } from './client.ts'

/** The messages were confirmed, but not all of them may be there. */
class LeadersMovedError extends Error {
  override readonly name = 'LeadersMovedError'

  constructor() {
    super('kafkajs asked anew who leads what while it was sending, and may have left out what has moved')
  }
}

/**
 * The same producer, which fails where kafkajs learned anew who leads what while it was sending.
 *
 * It notes by broker what was answered. Where a leader refuses or does not answer, it asks for the leaders and sends
 * again, but not to a broker that has answered already: if the partition has gone there, its messages are confirmed and
 * were sent to nobody.
 *
 * Whether it asked before it sent or in between cannot be seen: it tells of requests only when they are answered, and of
 * those that never are not at all. So it is had to ask beforehand, by a batch of nothing.
 */
export function believedWhileLeadersStay(producer: KafkaProducer): KafkaProducer {
  // Whoever does not tell, or sends what it has prepared, is not kafkajs.
  if (producer.on === undefined || producer.sendPrepared !== undefined) return producer
  let hasAsked = false
  producer.on('producer.network.request', ({ payload: { apiName } }) => {
    if (apiName === 'Metadata') hasAsked = true
  })
  return {
    connect: () => producer.connect(),
    disconnect: () => producer.disconnect(),
    sendBatch: async (batch) => {
      await producer.sendBatch({
        topicMessages: batch.topicMessages.map(({ topic }) => ({ topic, messages: [] })),
      })
      hasAsked = false
      await producer.sendBatch(batch)
      if (hasAsked) throw new LeadersMovedError()
    },
  }
}
