import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Catalogue } from '../../src/event/catalogue.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import { type EventDefinition, upcastFrom } from '../../src/event/definition.ts'
import { UnreadablePayloadError } from '../../src/event/errors.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import type { StandardSchemaV1 } from '../../src/event/standard-schema.ts'
import { storedEvent } from './support.ts'

const base = { stream: 'shop.order.event', aggregate: 'order' }

function catalogueOf(definition: Partial<EventDefinition>): Catalogue {
  return defineEvents({ OrderPlaced: { ...base, ...definition } })
}

function readSync(catalogue: Catalogue, event: OutboxEvent): OutboxEvent {
  const read = catalogue.read(event)
  if (read === undefined || read instanceof Promise) throw new Error('expected an event, at once')
  return read
}

function errorOf(catalogue: Catalogue, event: OutboxEvent): UnreadablePayloadError {
  try {
    readSync(catalogue, event)
  } catch (error) {
    if (error instanceof UnreadablePayloadError) return error
    throw error
  }
  throw new Error('expected it to be unreadable')
}

describe('reading a stored event', () => {
  test('without schema and upcast the very same event is returned', () => {
    const event = storedEvent({ payload: { id: 'a' } })
    expect(readSync(catalogueOf({}), event)).toBe(event)
  })

  test('L2 the event bears its name in code, whatever it is stored as', () => {
    const catalogue = catalogueOf({ storedAs: 'ORDER_PLACED' })
    expect(readSync(catalogue, storedEvent({ type: 'ORDER_PLACED' })).type).toBe('OrderPlaced')
  })

  test('an unknown type is left to the caller', () => {
    expect(catalogueOf({}).read(storedEvent({ type: 'Other' }))).toBeUndefined()
  })

  test('the payload has the form the schema gives it', () => {
    const schema = z.object({ amount: z.string().transform((text) => BigInt(text)) })
    expect(readSync(catalogueOf({ schema }), storedEvent({ payload: { amount: '7' } })).payload).toEqual({
      amount: 7n,
    })
  })

  test('an asynchronous schema gives a promise', async () => {
    const schema = z.object({ id: z.string().refine(async (id) => id !== 'bad') })
    const catalogue = catalogueOf({ schema })
    await expect(catalogue.read(storedEvent({ payload: { id: 'a' } }))).resolves.toMatchObject({
      payload: { id: 'a' },
    })
    await expect(catalogue.read(storedEvent({ payload: { id: 'bad' } }))).rejects.toThrow(
      UnreadablePayloadError,
    )
  })

  test('a payload that does not fit is refused with code, paths and event', () => {
    const error = errorOf(
      catalogueOf({ schema: z.object({ id: z.string() }) }),
      storedEvent({ payload: { id: 1 } }),
    )
    expect(error).toMatchObject({
      code: 'PAYLOAD_INVALID',
      newerThanCode: false,
      issues: [{ path: 'payload.id' }],
      event: { eventId: storedEvent().eventId, type: 'OrderPlaced', storedVersion: 1, knownVersion: 1 },
    })
    expect(error.message).toContain('payload.id')
  })

  test('U10 the error does not quote a sensitive field', () => {
    const catalogue = catalogueOf({ schema: v.object({ pin: v.string() }), sensitive: ['pin'] })
    expect(errorOf(catalogue, storedEvent({ payload: { pin: 123456 } })).message).not.toContain('123456')
  })
})

describe('L5 schema evolution', () => {
  const libraries: readonly (readonly [string, StandardSchemaV1])[] = [
    ['zod', z.object({ id: z.string() })],
    ['valibot', v.object({ id: v.string() })],
    ['arktype', type({ id: 'string' })],
  ]
  test.each(libraries)(
    'L5 older code reads a newer event and ignores unknown properties (%s)',
    (_, schema) => {
      const newer = storedEvent({ schemaVersion: 7, payload: { id: 'a', coupon: 'SPRING' } })
      const read = readSync(catalogueOf({ schema, version: 2, upcast: { 1: (old) => old } }), newer)
      expect(read.payload).toMatchObject({ id: 'a' })
      expect(read.schemaVersion).toBe(7)
    },
  )

  test('L5 a newer event that older code cannot read says that it is newer', () => {
    const newer = storedEvent({ schemaVersion: 2, payload: { orderId: 'a' } })
    const error = errorOf(catalogueOf({ schema: z.object({ id: z.string() }) }), newer)
    expect(error).toMatchObject({ code: 'PAYLOAD_INVALID', newerThanCode: true })
    expect(error.message).toContain('newer than this code')
  })

  test('L5 a stored event is upcast step by step to the current version', () => {
    const catalogue = catalogueOf({
      version: 3,
      schema: z.object({ id: z.string(), currency: z.string(), total: z.object({ amount: z.number() }) }),
      upcast: {
        1: (old) => ({ ...old, currency: 'KRW' }),
        2: ({ amount, ...rest }) => ({ ...rest, total: { amount } }),
      },
    })
    const total = { amount: 5 }
    const fromOne = readSync(catalogue, storedEvent({ schemaVersion: 1, payload: { id: 'a', amount: 5 } }))
    expect(fromOne).toMatchObject({ schemaVersion: 3, payload: { id: 'a', currency: 'KRW', total } })
    const fromTwo = readSync(
      catalogue,
      storedEvent({ schemaVersion: 2, payload: { id: 'a', currency: 'USD', amount: 5 } }),
    )
    expect(fromTwo.payload).toEqual({ id: 'a', currency: 'USD', total })
    const current = storedEvent({ schemaVersion: 3, payload: { id: 'a', currency: 'EUR', total } })
    expect(readSync(catalogue, current).payload).toEqual(current.payload)
  })

  test('L5 without upcasters an older payload goes to the schema as it is', () => {
    const schema = z.object({ id: z.string(), note: z.string().optional() })
    const read = readSync(
      catalogueOf({ schema, version: 2 }),
      storedEvent({ schemaVersion: 1, payload: { id: 'a' } }),
    )
    expect(read).toMatchObject({ schemaVersion: 1, payload: { id: 'a' } })
  })

  test('U10 the stored event is not touched by upcasting', () => {
    const payload = Object.freeze({ id: 'a' })
    const event = Object.freeze(storedEvent({ payload }))
    readSync(catalogueOf({ version: 2, upcast: { 1: (old) => ({ ...old, b: 1 }) } }), event)
    expect(event).toMatchObject({ schemaVersion: 1, payload: { id: 'a' } })
  })

  test('an upcaster may declare what it starts from', () => {
    interface OldOrder {
      readonly id: string
    }
    const upcast = { 1: upcastFrom<OldOrder>((old) => ({ orderId: old.id.toUpperCase() })) }
    expect(
      readSync(catalogueOf({ version: 2, upcast }), storedEvent({ payload: { id: 'a' } })).payload,
    ).toEqual({
      orderId: 'A',
    })
  })

  const failing: readonly (readonly [string, EventDefinition['upcast'], string])[] = [
    [
      'throws',
      {
        1: () => {
          throw new Error('no such field')
        },
      },
      'threw: no such field',
    ],
    ['returns nothing', { 1: () => undefined }, 'returned nothing'],
    ['returns a promise', { 1: () => Promise.reject(new Error('late')) }, 'must be synchronous'],
  ]
  test.each(failing)('an upcaster that %s makes the event unreadable', (_, upcast, message) => {
    const error = errorOf(
      catalogueOf({ version: 2, ...(upcast && { upcast }) }),
      storedEvent({ payload: {} }),
    )
    expect(error.code).toBe('UPCAST_FAILED')
    expect(error.message).toContain(message)
  })

  test('U10 what an upcaster throws is withheld from the message where fields are sensitive', () => {
    const cause = new Error('card 4111')
    const upcast = {
      1: () => {
        throw cause
      },
    }
    const error = errorOf(catalogueOf({ version: 2, upcast, sensitive: ['card'] }), storedEvent())
    expect(error.message).not.toContain('4111')
    expect(error.cause).toBe(cause)
  })

  test('an event older than the oldest version is refused instead of misread', () => {
    const catalogue = catalogueOf({ version: 3, oldestVersion: 2, upcast: { 2: (old) => old } })
    expect(errorOf(catalogue, storedEvent({ schemaVersion: 1 }))).toMatchObject({ code: 'UPCAST_FAILED' })
    expect(readSync(catalogue, storedEvent({ schemaVersion: 2 })).schemaVersion).toBe(3)
  })
})
