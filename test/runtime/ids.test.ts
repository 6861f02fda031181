import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createIds, isUuid, isUuidV7, normaliseUuid, systemIds, uuidV7Ms } from '../../src/runtime/ids.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'

class JumpingClock extends ManualClock {
  atMs = 1_767_225_600_000
  override now(): Date {
    return new Date(this.atMs)
  }
}

describe('event ids', () => {
  test('E5 are UUID v7 and ascend, however the wall clock jumps', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5_000, max: 5_000 }), { maxLength: 300 }), (jumps) => {
        const clock = new JumpingClock()
        const ids = createIds(clock)
        let last = ids.eventId()
        for (const jump of jumps) {
          clock.atMs += jump
          const next = ids.eventId()
          expect(isUuidV7(next)).toBe(true)
          expect(next > last).toBe(true)
          last = next
        }
      }),
    )
  })

  test('E5 the counter has room above its highest seed, and ids ascend into it', () => {
    const clock = new JumpingClock()
    // The seed's top bit is cleared, so all ones is the highest seed: 2^31 - 1.
    const ids = createIds(clock, (bytes) => bytes.fill(0xff))
    const first = ids.eventId()
    expect(first).toBe('019b76da-a800-77ff-bfff-ffffffffffff')
    const second = ids.eventId()
    expect(second > first).toBe(true)
    expect(uuidV7Ms(second)).toBe(clock.atMs)
  })

  test('E5 a hundred thousand in a burst are distinct and ascend', () => {
    const made = Array.from({ length: 100_000 }, () => systemIds.eventId())
    expect(new Set(made).size).toBe(made.length)
    expect(made.every((id, index) => index === 0 || id > (made[index - 1] as string))).toBe(true)
  })

  test('carry the time they were made', () => {
    const clock = new JumpingClock()
    expect(uuidV7Ms(createIds(clock).eventId())).toBe(clock.atMs)
    expect(uuidV7Ms('00000000-0000-4000-8000-000000000000')).toBeNull()
  })
})

test('UUIDs are recognised and have one spelling', () => {
  const v4 = '9B1DEB4D-3B7D-4BAD-9BDD-2B0D7B3DCB6D'
  expect(isUuid(v4)).toBe(true)
  expect(isUuidV7(v4)).toBe(false)
  expect(normaliseUuid(v4)).toBe(v4.toLowerCase())
  for (const other of ['', 'x', `${v4} `, v4.replaceAll('-', ''), `{${v4}}`, 7, null, undefined]) {
    expect(isUuid(other)).toBe(false)
    expect(normaliseUuid(other)).toBeNull()
  }
})

test('two lives of a worker never share a name', () => {
  const names = new Set(Array.from({ length: 100 }, () => systemIds.workerId()))
  expect(names.size).toBe(100)
  expect([...names][0]).toMatch(/^[^:]+:\d+:[0-9a-f]{8}$/)
})
