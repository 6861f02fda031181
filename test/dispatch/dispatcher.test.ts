import { describe, expect, test, vi } from 'vitest'
import { createDispatcher } from '../../src/dispatch/dispatcher.ts'
import type { Handler, Middleware } from '../../src/dispatch/handler.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import { CommitpostError, InvalidOptionsError, NonRetryableError } from '../../src/runtime/errors.ts'
import { classifyError } from '../../src/settle/classify.ts'
import { leaseLost, setup, someDelivery, someEvent } from './support.ts'

const failed = (code: string, kind: string): object => ({
  kind: 'failed',
  failure: { code, message: expect.any(String) },
  retry: { kind },
})

describe('a handler that ends', () => {
  test('E16 without an error is handled; a synchronous one costs no promise', async () => {
    const sync = setup({ handlers: { OrderPlaced: () => 'ignored' } })
    expect(sync.dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled' })
    expect(sync.clock.sleeping).toBe(0)
    const slow = setup({ handlers: { OrderPlaced: async () => 'ignored' } })
    const outcome = slow.dispatcher.dispatch(someDelivery())
    expect(outcome).toBeInstanceOf(Promise)
    expect(slow.dispatcher.running).toBe(1)
    expect(await outcome).toEqual({ kind: 'handled' })
    expect(slow.dispatcher.running).toBe(0)
  })

  test('with a thenable of any make is awaited: a query builder runs only then', async () => {
    const ran = vi.fn()
    const builder = {
      // oxlint-disable-next-line unicorn/no-thenable -- this is what such builders look like
      then(resolve: () => void) {
        ran()
        resolve()
      },
    }
    const { dispatcher } = setup({ handlers: { OrderPlaced: () => builder } })
    expect(await dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled' })
    expect(ran).toHaveBeenCalledOnce()
  })

  const throws: readonly (readonly [string, unknown, object])[] = [
    ['an error', new Error('boom'), failed('HANDLER_ERROR', 'by-policy')],
    ['null', null, failed('HANDLER_ERROR', 'by-policy')],
    ['undefined', undefined, failed('HANDLER_ERROR', 'by-policy')],
    ['a string', 'text', failed('HANDLER_ERROR', 'by-policy')],
    ['NonRetryableError', new NonRetryableError('no'), failed('NON_RETRYABLE', 'never')],
    [
      'a network error',
      Object.assign(new Error('x'), { code: 'ECONNRESET' }),
      failed('ECONNRESET', 'by-policy'),
    ],
    // It may be mistaken: of a lease that is lost the database refuses the failure too.
    ['that the lease is lost', leaseLost, failed('LEASE_LOST', 'by-policy')],
  ]
  for (const [name, thrown, outcome] of throws) {
    test(`E10 by throwing ${name}, at once or later, has an outcome`, async () => {
      const sync: Handler = () => {
        throw thrown as Error
      }
      const later: Handler = () => Promise.reject(thrown)
      for (const handler of [sync, later]) {
        const { dispatcher } = setup({ handlers: { OrderPlaced: handler } })
        expect(await dispatcher.dispatch(someDelivery())).toEqual(outcome)
        expect(dispatcher.running).toBe(0)
      }
    })
  }

  test('with a thenable that bites has an outcome', async () => {
    const bites = {
      // oxlint-disable-next-line unicorn/no-thenable -- the point of the test
      get then() {
        throw new Error('do not touch')
      },
    }
    const { dispatcher } = setup({ handlers: { OrderPlaced: () => bites } })
    expect(await dispatcher.dispatch(someDelivery())).toMatchObject({
      kind: 'failed',
      failure: { message: 'do not touch' },
    })
  })
})

describe('finding the handler', () => {
  test('D4 no handler is a failure for good, with a reason a person can act on', async () => {
    const { dispatcher } = setup()
    const outcome = await dispatcher.dispatch(someDelivery({ event: someEvent({ type: 'OrderShipped' }) }))
    expect(outcome).toEqual(failed('NO_HANDLER', 'never'))
    expect(outcome).toMatchObject({
      failure: {
        message: expect.stringMatching(/"billing" has no handler .*"OrderShipped".*retry the dead letter/),
      },
    })
    expect(dispatcher.handles('OrderPlaced')).toBe(true)
    expect(dispatcher.handles('OrderShipped')).toBe(false)
    expect(dispatcher.handles('toString')).toBe(false)
  })

  test('D4 a name that every object has is no handler', async () => {
    const { dispatcher } = setup()
    const outcome = await dispatcher.dispatch(someDelivery({ event: someEvent({ type: 'constructor' }) }))
    expect(outcome).toEqual(failed('NO_HANDLER', 'never'))
  })

  test('D4 the catch-all takes what has no handler of its own, and only that', async () => {
    const seen: string[] = []
    const { dispatcher } = setup({
      handlers: {
        OrderPlaced: () => seen.push('own'),
        '*': (event) => seen.push(event.type),
      },
    })
    await dispatcher.dispatch(someDelivery())
    await dispatcher.dispatch(someDelivery({ event: someEvent({ type: 'OrderShipped' }) }))
    expect(seen).toEqual(['own', 'OrderShipped'])
    expect(dispatcher.handles('anything')).toBe(true)
  })

  test('the caller can leave to newer code what this code has no handler for', async () => {
    const { dispatcher } = setup({ onNoHandler: (event) => (event.type === 'OrderShipped' ? 5_000 : null) })
    expect(await dispatcher.dispatch(someDelivery({ event: someEvent({ type: 'OrderShipped' }) }))).toEqual({
      kind: 'postponed',
      failure: { code: 'NO_HANDLER', message: expect.any(String) },
      afterMs: 5_000,
    })
    expect(await dispatcher.dispatch(someDelivery({ event: someEvent({ type: 'Other' }) }))).toEqual(
      failed('NO_HANDLER', 'never'),
    )
  })
})

describe('reading the event', () => {
  const upcast = (event: OutboxEvent): OutboxEvent => ({
    ...event,
    type: 'OrderPlacedV2',
    payload: { currency: 'KRW' },
  })

  for (const kind of ['sync', 'async']) {
    test(`E16 the handler gets what the reader made of it (${kind})`, async () => {
      const seen: OutboxEvent[] = []
      const { dispatcher } = setup({
        reader: { read: (event) => (kind === 'sync' ? upcast(event) : Promise.resolve(upcast(event))) },
        handlers: { OrderPlacedV2: (event) => seen.push(event) },
      })
      expect(await dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled' })
      expect(seen[0]?.payload).toEqual({ currency: 'KRW' })
    })

    for (const code of ['PAYLOAD_INVALID', 'UPCAST_FAILED'] as const) {
      test(`a stored event that cannot be read (${code}, ${kind}) fails for good and never reaches its handler`, async () => {
        const handler = vi.fn()
        const error = new CommitpostError(code, 'cannot be read')
        const { dispatcher } = setup({
          reader: {
            read: () => {
              if (kind === 'sync') throw error
              return Promise.reject(error)
            },
          },
          handlers: { OrderPlaced: handler },
        })
        expect(await dispatcher.dispatch(someDelivery())).toEqual(failed(code, 'never'))
        expect(handler).not.toHaveBeenCalled()
      })
    }
  }

  for (const kind of ['sync', 'async']) {
    test(`D4 a type the reader does not know (${kind}) is for the catch-all, as stored, or fails for good`, async () => {
      const seen: OutboxEvent[] = []
      const reader = { read: () => (kind === 'sync' ? undefined : Promise.resolve(undefined)) }
      const caught = setup({ reader, handlers: { '*': (event) => seen.push(event) } })
      expect(await caught.dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled' })
      expect(seen).toEqual([someEvent()])
      const uncaught = setup({ reader })
      expect(await uncaught.dispatcher.dispatch(someDelivery())).toEqual(
        failed('UNKNOWN_EVENT_TYPE', 'never'),
      )
      const postponing = setup({ reader, onNoHandler: () => 1_000 })
      expect(await postponing.dispatcher.dispatch(someDelivery())).toMatchObject({ kind: 'postponed' })
    })
  }

  test('what newer code wrote can be left to newer code, by type or by version', async () => {
    const unknown = new CommitpostError('UNKNOWN_EVENT_TYPE', 'x')
    const newer = Object.assign(new CommitpostError('PAYLOAD_INVALID', 'x'), { newerThanCode: true })
    for (const error of [unknown, newer]) {
      const { dispatcher } = setup({
        reader: {
          read: () => {
            throw error
          },
        },
        onNoHandler: () => 1_000,
      })
      expect(await dispatcher.dispatch(someDelivery())).toMatchObject({ kind: 'postponed', afterMs: 1_000 })
    }
  })

  test("a handler's own unknown type is its own failure, never postponed", async () => {
    const { dispatcher } = setup({
      handlers: {
        OrderPlaced: () => Promise.reject(new CommitpostError('UNKNOWN_EVENT_TYPE', 'published a typo')),
      },
      onNoHandler: () => 1_000,
    })
    expect(await dispatcher.dispatch(someDelivery())).toEqual(failed('UNKNOWN_EVENT_TYPE', 'never'))
  })
})

describe('middleware', () => {
  test('runs around every handler, the first outermost, and is built once', async () => {
    const seen: string[] = []
    const built = vi.fn()
    const around =
      (name: string): Middleware =>
      (next) => {
        built()
        return async (event, ctx) => {
          seen.push(`${name} in`)
          await next(event, ctx)
          seen.push(`${name} out`)
        }
      }
    const { dispatcher } = setup({
      handlers: { OrderPlaced: () => seen.push('handler') },
      middleware: [around('a'), around('b')],
    })
    await dispatcher.dispatch(someDelivery())
    await dispatcher.dispatch(someDelivery())
    expect(seen.slice(0, 5)).toEqual(['a in', 'b in', 'handler', 'b out', 'a out'])
    expect(seen).toHaveLength(10)
    expect(built).toHaveBeenCalledTimes(2)
  })

  test('can swallow an error or throw one of its own', async () => {
    const handlers = { OrderPlaced: () => Promise.reject(new Error('x')) }
    const swallow: Middleware = (next) => async (event, ctx) => {
      await Promise.resolve(next(event, ctx)).catch(() => {})
    }
    const replace: Middleware = () => () => {
      throw new NonRetryableError('refused by policy')
    }
    expect(await setup({ handlers, middleware: [swallow] }).dispatcher.dispatch(someDelivery())).toEqual({
      kind: 'handled',
    })
    expect(await setup({ handlers, middleware: [replace] }).dispatcher.dispatch(someDelivery())).toEqual(
      failed('NON_RETRYABLE', 'never'),
    )
  })
})

test('a classifier or hook that throws never costs the outcome', async () => {
  const broken = (): never => {
    throw new Error('a bug in the wiring')
  }
  const event = someEvent({ type: 'Other' })
  for (const options of [{ classify: broken }, { onNoHandler: broken }]) {
    expect(await setup(options).dispatcher.dispatch(someDelivery({ event }))).toMatchObject({
      kind: 'failed',
      failure: { code: 'HANDLER_ERROR', message: expect.stringMatching(/no handler.*a bug in the wiring/) },
      retry: { kind: 'by-policy' },
    })
  }
})

test('E16 an event without a lease, from the log or from Kafka, runs the same handlers', async () => {
  const leases: unknown[] = []
  const dispatcher = createDispatcher<{
    event: OutboxEvent
    attempt: number
    maxAttempts: number
    lease: null
  }>({
    subscription: 'billing',
    handlers: { OrderPlaced: (_event, ctx) => leases.push(ctx.lease) },
    classify: (error) => classifyError(error, new Date(0)),
  })
  expect(await dispatcher.dispatch({ event: someEvent(), attempt: 1, maxAttempts: 1, lease: null })).toEqual({
    kind: 'handled',
  })
  expect(leases).toEqual([null])
})

test('options that cannot work are refused all together', () => {
  const bad = { handlers: { A: 'no' }, middleware: [7], timeoutMs: 0 } as unknown as Parameters<
    typeof setup
  >[0]
  expect(() => setup(bad)).toThrow(InvalidOptionsError)
  expect(() => setup(bad)).toThrow(
    /"A" must be a function.*\n- middleware\[0\] .*\n- timeoutMs must be more than 0/,
  )
  expect(() => setup({ handlers: {} })).toThrow('at least one handler')
})
