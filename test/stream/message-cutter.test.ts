import { expect, test } from 'vitest'
import { MessageCutter } from '../../src/stream/postgres/message-cutter.ts'

function message(kind: string, content: string): Buffer {
  const bytes = Buffer.alloc(5 + content.length)
  bytes.write(kind, 0)
  bytes.writeUInt32BE(4 + content.length, 1)
  bytes.write(content, 5)
  return bytes
}

const MESSAGES = [
  message('W', 'begins'),
  message('d', 'first'),
  message('d', ''),
  message('d', 'x'.repeat(50)),
  message('c', ''),
  message('d', 'last'),
  message('Z', 'I'),
]

function cutInto(sizes: () => number): readonly string[] {
  const bytes = Buffer.concat(MESSAGES)
  const data: {
    readonly bytes: Buffer
    readonly start: number
    readonly end: number
    readonly at: number
  }[] = []
  const told: string[] = []
  const cutter = new MessageCutter({
    copyData: (chunk, start, end) => {
      data.push({ bytes: chunk, start, end, at: told.length })
      told.push('')
    },
    other: (whole) => told.push(whole.toString('latin1')),
  })
  for (let at = 0; at < bytes.length; ) {
    const size = sizes()
    cutter.take(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
  // Read at the end: what was handed over has to stay as it was.
  for (const { bytes: chunk, start, end, at } of data) told[at] = `d ${chunk.toString('latin1', start, end)}`
  return told
}

test('messages come out whole and in order, wherever the socket cuts them', () => {
  const expected = MESSAGES.map((whole) =>
    whole[0] === 0x64 ? `d ${whole.toString('latin1', 5)}` : whole.toString('latin1'),
  )
  for (let size = 1; size <= Buffer.concat(MESSAGES).length; size += 1) {
    expect(cutInto(() => size)).toEqual(expected)
  }
  let turn = 0
  expect(
    cutInto(() => {
      turn += 1
      return 1 + ((turn * 7) % 13)
    }),
  ).toEqual(expected)
})
