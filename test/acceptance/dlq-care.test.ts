import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type DeadLetter,
  defineEvents,
  fixed,
  NonRetryableError,
  type Subscription,
  type SubscriptionOptions,
  subscription,
  type Transaction,
} from '../../src/index.ts'
import { eventually, openSystem, type System } from './support.ts'

const events = defineEvents({
  OrderCompleted: {
    stream: 'ecommerce.order',
    aggregate: 'Order',
    version: 2,
    schema: z.object({ orderId: z.number(), card: z.string().optional() }),
    upcast: {
      1: () => {
        throw new Error('the field orderNo is missing')
      },
    },
    sensitive: ['card'],
  },
})

type Events = typeof events
type Options = SubscriptionOptions<Events, Transaction>
type Shop = System<Events>

const KIM = { operator: 'kim@example.com', note: '금액 정정' }

const openShop = (): Promise<Shop> => openSystem(events)

/** Every event of the stream, also those it has no handler for. */
function processor(
  name: string,
  handle: NonNullable<Options['on']['OrderCompleted']>,
  options: Partial<Options> = {},
): Subscription<Events, Transaction> {
  const always = { pollMs: 20, retry: fixed(0), maxAttempts: 3, streams: ['ecommerce.order'] }
  return subscription(name, { ...always, ...options, on: { OrderCompleted: handle } })
}

const refuse = (code = 'OUT_OF_STOCK'): never => {
  throw new NonRetryableError('재고가 부족합니다', { failureCode: code })
}

function insert(shop: Shop, type: string, version: number, payload: object): Promise<string> {
  return shop.value(
    `insert into outbox_event (stream, event_type, schema_version, aggregate_type, aggregate_id, payload)
     values ('ecommerce.order', $1, $2, 'Order', '1', $3) returning event_id`,
    [type, version, payload],
  )
}

async function oneLetter(shop: Shop): Promise<DeadLetter> {
  await eventually('there is a dead letter', async () => (await shop.outbox.deadLetters.count()) === 1)
  const [letter] = await shop.outbox.deadLetters.list()
  return letter as DeadLetter
}

describe('what a dead letter tells', () => {
  test('D2 D4 a closed list of reasons tells apart what went wrong, whatever code a handler threw', async () => {
    await using shop = await openShop()
    await shop.run([
      processor('p', ({ payload }) => {
        if (payload.orderId === 1) throw Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })
        refuse()
      }),
    ])
    const expected = new Map([
      [await insert(shop, 'OrderRefunded', 1, {}), ['NO_HANDLER', 'NO_HANDLER']],
      [await insert(shop, 'OrderCompleted', 2, { orderId: 'x' }), ['PAYLOAD_INVALID', 'PAYLOAD_INVALID']],
      [await insert(shop, 'OrderCompleted', 1, {}), ['UPCAST_FAILED', 'UPCAST_FAILED']],
      [await insert(shop, 'OrderCompleted', 2, { orderId: 1 }), ['RETRIES_EXHAUSTED', 'ETIMEDOUT']],
      [await insert(shop, 'OrderCompleted', 2, { orderId: 2 }), ['NON_RETRYABLE', 'OUT_OF_STOCK']],
    ])
    await shop.untilSettled()
    const letters = await shop.outbox.deadLetters.list()
    expect(new Map(letters.map((letter) => [letter.eventId, [letter.reason, letter.errorCode]]))).toEqual(
      expected,
    )
    expect(await shop.outbox.deadLetters.count({ reason: 'RETRIES_EXHAUSTED' })).toBe(1)
  })

  test('D2 the history has every attempt: when, by which worker, how long, with which error', async () => {
    await using shop = await openShop()
    await shop.run(
      [
        processor('p', (_event, ctx) => {
          throw new Error(`결제 서버 오류 ${ctx.attempt}`)
        }),
      ],
      { workerId: 'worker-7' },
    )
    await insert(shop, 'OrderCompleted', 2, { orderId: 1 })
    const { attemptHistory } = await oneLetter(shop)
    expect(attemptHistory).toEqual(
      [1, 2, 3].map((attempt) => ({
        attempt,
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        worker: 'worker-7',
        durationMs: expect.any(Number),
        code: 'HANDLER_ERROR',
        message: expect.stringContaining(`결제 서버 오류 ${attempt}`),
      })),
    )
    const times = attemptHistory.map(({ at }) => Date.parse(at))
    expect(times).toEqual(times.toSorted((one, other) => one - other))
  })

  test('D2 a history keeps the newest 50 attempts, however many there were', async () => {
    await using shop = await openShop()
    const fail = (): never => {
      throw new Error('no')
    }
    await shop.run([processor('p', fail, { maxAttempts: 60 })])
    await insert(shop, 'OrderCompleted', 2, { orderId: 1 })
    const { attemptHistory, retryCount } = await oneLetter(shop)
    expect(retryCount).toBe(59)
    expect(attemptHistory.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 50 }, (_, n) => n + 11))
  })

  test('D3 D8 an export has all of them, page by page, with sensitive fields masked', async () => {
    await using shop = await openShop()
    await shop.run([processor('p', () => refuse())])
    for (let orderId = 1; orderId <= 120; orderId += 1) {
      await insert(shop, 'OrderCompleted', 2, { orderId, card: '4111 1111' })
    }
    await shop.untilSettled()
    const exported: DeadLetter[] = []
    for await (const letter of shop.outbox.deadLetters.export()) exported.push(letter)
    expect(exported.map(({ id }) => Number(id))).toEqual(Array.from({ length: 120 }, (_, n) => 120 - n))
    expect(JSON.stringify(exported)).not.toContain('4111 1111')
    expect(exported[0]?.payload).toEqual({ orderId: expect.any(Number), card: '***' })
    expect(() => shop.outbox.deadLetters.export({ subscription: 'a\0' })).toThrow('NUL')
  })
})

describe('amend and retry', () => {
  const watched = (seen: number[], refused: number | null): NonNullable<Options['on']['OrderCompleted']> => {
    return ({ payload }) => {
      if (payload.orderId === refused) refuse()
      seen.push(payload.orderId)
    }
  }

  test('D3 U10 an amended event takes the place of the dead one, for its subscription only and in order', async () => {
    await using shop = await openShop()
    const ledger: number[] = []
    const mailer: number[] = []
    const ordered = { order: 'aggregate' } as const
    await shop.run([
      processor('ledger', watched(ledger, 1), ordered),
      processor('mailer', watched(mailer, null), ordered),
    ])
    const original = await insert(shop, 'OrderCompleted', 2, { orderId: 1 })
    for (const orderId of [2, 3]) await insert(shop, 'OrderCompleted', 2, { orderId })
    const { id } = await oneLetter(shop)
    await eventually('the mailer is done', () => mailer.length === 3)
    expect(ledger).toEqual([])
    // One that a worker has in hand waits a moment later.
    const blocked = () => shop.outbox.deadLetters.blocked()
    await eventually('both wait behind it', async () => (await blocked())[0]?.waiting === 2)
    expect(await blocked()).toMatchObject([{ subscription: 'ledger', deadLetterId: id }])

    const { eventId } = await shop.outbox.deadLetters.amend(id, { orderId: 10 }, KIM)
    await eventually('the ledger has them', () => ledger.length === 3)
    expect(ledger).toEqual([10, 2, 3])
    expect(mailer).toEqual([1, 2, 3])
    expect(await shop.value('select payload from outbox_event where event_id = $1', [original])).toEqual({
      orderId: 1,
    })
    expect(await shop.value('select headers from outbox_event where event_id = $1', [eventId])).toEqual({
      amendedFrom: original,
      causationId: original,
      correlationId: original,
    })
    expect(await shop.outbox.deadLetters.show(id)).toMatchObject({
      resolution: 'amend',
      resolvedBy: KIM.operator,
      note: expect.stringContaining(eventId),
    })

    const replayed: number[] = []
    await shop.run([processor('replay', watched(replayed, null), { ...ordered, startFrom: 'beginning' })])
    await eventually('all is replayed', () => replayed.length >= 3)
    await shop.untilSettled()
    expect(replayed).toEqual([1, 2, 3])
  })

  test('D3 the payload must fit the catalogue; what does not changes nothing', async () => {
    await using shop = await openShop()
    await shop.run([processor('p', () => refuse())])
    await insert(shop, 'OrderCompleted', 2, { orderId: 1 })
    const { id } = await oneLetter(shop)
    const { deadLetters } = shop.outbox
    for (const [payload, code] of [
      [{ orderId: 'ten' }, 'PAYLOAD_INVALID'],
      [undefined, 'PAYLOAD_INVALID'],
      [{ orderId: 1, card: 'x'.repeat(2 ** 20) }, 'PAYLOAD_TOO_LARGE'],
      [{ orderId: 1, card: 'a\0' }, 'PAYLOAD_NOT_STORABLE'],
    ] as const) {
      await expect(deadLetters.amend(id, payload, KIM)).rejects.toMatchObject({ code })
    }
    await expect(deadLetters.amend('404', { orderId: 1 }, KIM)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const tooLong = { operator: 'kim', note: 'x'.repeat(2 ** 20) }
    await expect(deadLetters.amend(id, { orderId: 1 }, tooLong)).rejects.toThrow('at most 2000 characters')
    expect(await shop.count('outbox_event')).toBe(1)
    expect(await shop.count('outbox_operator_log')).toBe(0)
    expect(await deadLetters.show(id)).toMatchObject({ resolved: false })
  })

  test('D3 an event of a type that the catalogue lost cannot be amended with it', async () => {
    await using shop = await openShop()
    await shop.run([processor('p', () => refuse())])
    await insert(shop, 'OrderRefunded', 1, {})
    const { id } = await oneLetter(shop)
    await expect(shop.outbox.deadLetters.amend(id, {}, KIM)).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT_TYPE',
    })
  })

  test('D3 an old payload that no upcaster reads is amended to one of today', async () => {
    await using shop = await openShop()
    const seen: number[] = []
    await shop.run([processor('p', watched(seen, null))])
    await insert(shop, 'OrderCompleted', 1, { no: 5 })
    const { id } = await oneLetter(shop)
    const { eventId } = await shop.outbox.deadLetters.amend(id, { orderId: 5 }, KIM)
    await shop.untilStatus(eventId, 'DONE')
    expect(seen).toEqual([5])
  })
})
