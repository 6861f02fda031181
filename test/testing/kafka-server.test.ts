import { existsSync } from 'node:fs'
import { Kafka, logLevel } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { clusterId, startKafka } from '../support/kafka/broker.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { firstLine, isRunning, killProgram, startProgram } from '../support/program.ts'

bePatient()

test.each([0x00, 0x7f, 0xf8, 0xfb, 0xff])('no cluster has a name that looks like an option: %i', (byte) => {
  expect(clusterId(new Uint8Array(16).fill(byte))).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/)
})

describe.skipIf(!kafkaAvailable())('the launcher of Kafka', () => {
  test('keeps what was written over a crash of the broker, and leaves nothing when it is stopped', async () => {
    const kafka = await startKafka()
    const written = ['one', 'two']
    await write(kafka.bootstrap, written)
    const first = kafka.pid ?? 0
    await kafka.kill()
    expect(isRunning(first)).toBe(false)
    await kafka.restart()
    expect(await read(kafka.bootstrap, written.length)).toEqual(written)
    const second = kafka.pid ?? 0
    await kafka.stop()
    expect(isRunning(second)).toBe(false)
    expect(existsSync(kafka.directory)).toBe(false)
  })

  test('leaves no process and no directory when the process that started it is killed', async () => {
    const program = startProgram('start-kafka', [])
    const { pid, directory } = await firstLine<{ pid: number; directory: string }>(program)
    expect(isRunning(pid)).toBe(true)
    expect(existsSync(directory)).toBe(true)
    await killProgram(program)
    await comes('the broker and its directory are gone', () => !isRunning(pid) && !existsSync(directory))
  })
})

function client(bootstrap: string): Kafka {
  return new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
}

async function write(bootstrap: string, values: readonly string[]): Promise<void> {
  const producer = client(bootstrap).producer({ idempotent: true, allowAutoTopicCreation: true })
  await producer.connect()
  await producer.send({ topic: 'kept', messages: values.map((value) => ({ key: 'k', value })) })
  await producer.disconnect()
}

async function read(bootstrap: string, count: number): Promise<readonly string[]> {
  const consumer = client(bootstrap).consumer({ groupId: 'readers' })
  const seen: string[] = []
  await consumer.connect()
  await consumer.subscribe({ topic: 'kept', fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => void seen.push(String(message.value)) })
  await comes('all that was written is read', () => seen.length >= count)
  await consumer.disconnect()
  return seen
}
