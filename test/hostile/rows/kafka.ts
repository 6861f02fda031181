import { relay } from '../../../src/index.ts'
import {
  createKafkaConsumer,
  createKafkaEventBus,
  deadLetterTopic,
  kafka,
  relayProducer,
  sequenceChecker,
} from '../../../src/kafka/index.ts'
import { FakeBroker } from '../../kafka/support.ts'
import { type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import { events } from '../scene.ts'

const { producer } = new FakeBroker()

const kafkaOf = (does: string, says: string, options: unknown): Refusal =>
  invalid(`kafka(${does})`, says, () => kafka(wrong(options)))

/** Good options with one that is not. */
const kafkaWith = (does: string, says: string, option: object): Refusal =>
  kafkaOf(`{ producer, ${does} }`, says, { producer, ...option })

const relayProducerWith = (does: string, says: string, options: unknown): Refusal =>
  invalid(`relayProducer(${does})`, says, () => relayProducer(wrong(options)))

const relayWith = (does: string, says: string, options: unknown): Refusal =>
  invalid(`relay('r', ${does})`, says, () => relay('r', wrong(options)))

const consumerWith = (does: string, says: string, option: object): Refusal =>
  invalid(`createKafkaConsumer({ …, ${does} })`, says, () =>
    createKafkaConsumer(
      wrong({
        name: 'c',
        consumer: () => ({}),
        topics: ['t'],
        events,
        on: { OrderPlaced: () => undefined },
        deadLetters: { setAside: async () => {} },
        ...option,
      }),
    ),
  )

const via = kafka({ producer })

export const kafkas: Group = {
  title: 'Kafka',
  rows: [
    kafkaOf('', 'the options must be an object, but is undefined', undefined),
    kafkaOf('{ producer: kafka.producer() }', 'producer must be a function that makes one', {
      producer: producer(),
    }),
    kafkaWith("topics: 'a'", 'did you mean "topic"?', { topics: 'a' }),
    kafkaWith("topic: 'a b'", 'topic must be 1 to 249 letters, digits, dots, dashes or underscores', {
      topic: 'a b',
    }),
    kafkaWith(
      "topic: '{aggregate}'",
      'there is no {aggregate}; known are {stream}, {aggregateType}, {type}',
      {
        topic: '{aggregate}',
      },
    ),
    kafkaWith('topic: {}', 'topic must name at least one event type', { topic: {} }),
    kafkaWith("key: 'aggregateId'", 'key must be a function, but is "aggregateId"', { key: 'aggregateId' }),
    kafkaWith("format: 'avro'", "format must be 'payload', 'envelope'", { format: 'avro' }),
    kafkaWith("format: { cloudEvents: 'binary' }", 'source of the CloudEvents must be text', {
      format: { cloudEvents: 'binary' },
    }),
    kafkaWith('timeoutMs: 0', 'timeoutMs must be a whole number from 1', { timeoutMs: 0 }),
    relayProducerWith('', 'the options must be an object, but is undefined', undefined),
    relayProducerWith('{ brokers: [] }', "brokers must be a list of at least one 'host:port'", {
      brokers: [],
    }),
    relayProducerWith("{ brokers: ['kafka-1'] }", 'but has "kafka-1"', { brokers: ['kafka-1'] }),
    relayProducerWith("{ brokers, ssl: 'yes' }", 'ssl must be true, false or an object, but is "yes"', {
      brokers: ['kafka-1:9092'],
      ssl: 'yes',
    }),
    relayProducerWith(
      "{ brokers, sasl: { mechanism: 'aws', … } }",
      "mechanism of sasl must be one of 'plain', 'scram-sha-256', 'scram-sha-512'",
      { brokers: ['kafka-1:9092'], sasl: { mechanism: 'aws', username: 'u', password: 'p' } },
    ),
    relayProducerWith('{ brokers, sasl: { …, password: 1 } }', 'password of sasl must be text', {
      brokers: ['kafka-1:9092'],
      sasl: { mechanism: 'plain', username: 'u', password: 1 },
    }),
    relayProducerWith('{ brokers, timeoutMs: 5 }', 'there is no option "timeoutMs"', {
      brokers: ['kafka-1:9092'],
      timeoutMs: 5,
    }),
    relayProducerWith('{ brokers, connectionTimeout: 0 }', 'connectionTimeout must be a whole number', {
      brokers: ['kafka-1:9092'],
      connectionTimeout: 0,
    }),
    relayWith('{}', 'via must be a transport, such as kafka({ producer }), but is undefined', {}),
    relayWith('{ via, on: {} }', 'there is no option "on"; it is for handlers, which a relay has none of', {
      via,
      on: {},
    }),
    relayWith('{ via, maxRetries: 3 }', 'use maxAttempts, which counts the first attempt too', {
      via,
      maxRetries: 3,
    }),
    relayWith('{ via, lanes: 4 }', "lanes are for ordered subscriptions: add order 'aggregate'", {
      via,
      lanes: 4,
    }),
    invalid(
      'outbox.worker([relay, relay]) of one name',
      'subscription "r" is listed more than once',
      ({ outbox }) => outbox.worker([relay('r', { via }), relay('r', { via })]),
    ),
    consumerWith("groupId: 'g'", 'give it to kafka.consumer({ groupId })', { groupId: 'g' }),
    consumerWith("topics: 't'", 'topics must be a list of at least one name or RegExp, but is "t"', {
      topics: 't',
    }),
    consumerWith('deadLetters: undefined', 'deadLetters must have the methods setAside', {
      deadLetters: undefined,
    }),
    consumerWith("onceBy: 'id'", "onceBy must be one of 'eventId', 'sequence', but is \"id\"", {
      onceBy: 'id',
    }),
    consumerWith('on: {}', 'there must be at least one handler', { on: {} }),
    consumerWith('store: {}', 'store must have the methods recordOnce, assertInTransaction', { store: {} }),
    invalid("deadLetterTopic({ producer, topic: 'a b' })", 'topic must be a name that Kafka can have', () =>
      deadLetterTopic({ producer, topic: 'a b' }),
    ),
    invalid('sequenceChecker({ maxKeys: 0 })', 'maxKeys must be a whole number from 1', () =>
      sequenceChecker({ maxKeys: 0 }),
    ),
    invalid('createKafkaEventBus({ producer })', 'events must have the methods prepare, read', () =>
      createKafkaEventBus(wrong({ producer })),
    ),
    refused('a transaction for a Kafka bus', 'DUAL_WRITE', 'Kafka cannot take part in it', ({ pool }) =>
      createKafkaEventBus({ events, producer }).publish(wrong(pool), 'OrderPlaced', wrong({})),
    ),
  ],
}
