export type {
  AnsweredRequest,
  ConsumerCrash,
  KafkaConsumerClient,
  KafkaMessage,
  KafkaProducer,
  KafkaTopicMessages,
  PreparedMessage,
  ReceivedBatch,
  ReceivedHeader,
  ReceivedMessage,
  SentHeader,
} from './client.ts'
export type { KafkaConsumerOptions } from './consumer-options.ts'
export {
  type DeadLetterTopicOptions,
  type DeadRecord,
  type DeadRecordSink,
  deadLetterTopic,
} from './dead-letter-topic.ts'
export { type ConsumerStopOptions, createKafkaConsumer, type KafkaConsumer } from './kafka-consumer.ts'
export {
  createKafkaEventBus,
  type KafkaEventBus,
  type KafkaEventBusOptions,
  type NoTransaction,
} from './kafka-event-bus.ts'
export { kafka } from './kafka-transport.ts'
export type { KafkaProducerOptions } from './producer-options.ts'
export type { KafkaRecord, RecordFormat } from './record.ts'
export {
  type NumberedEvent,
  type SequenceChecker,
  type SequenceCheckerOptions,
  type SequenceCounts,
  type SequenceFinding,
  sequenceChecker,
} from './sequence-checker.ts'
export type { TopicRoute } from './topic.ts'
export { relayProducer } from './wire/relay-producer.ts'
export type { RelayProducerOptions } from './wire/relay-producer-options.ts'
export type { SaslCredentials } from './wire/sasl.ts'
