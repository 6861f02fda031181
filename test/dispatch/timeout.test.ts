import { describe, expect, test, vi } from 'vitest'
import type { HandlerContext } from '../../src/dispatch/handler.ts'
import { HandlerTimeoutError, LeaseLostError, WorkerStoppingError } from '../../src/runtime/errors.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createClassify } from '../../src/settle/classify.ts'
import { type Deferred, deferred, setup, someDelivery } from './support.ts'

/** A dispatcher whose one handler waits for the test, and the context it got. */
function waiting(options: Parameters<typeof setup>[0] = {}) {
  const gates: Deferred[] = []
  const contexts: HandlerContext[] = []
  const parts = setup({
    handlers: {
      OrderPlaced: (_event, ctx) => {
        const gate = deferred()
        gates.push(gate)
        contexts.push(ctx)
        return gate.promise
      },
    },
    ...options,
  })
  return { ...parts, gates, contexts }
}

describe('a handler that does not come back', () => {
  test('E10 fails with HANDLER_TIMEOUT, not before its time and at most a tick after, and its signal aborts', async () => {
    const { dispatcher, clock, contexts } = waiting()
    const outcome = dispatcher.dispatch(someDelivery())
    const signal = contexts[0]?.signal
    const settled = vi.fn()
    void Promise.resolve(outcome).then(settled)
    await clock.advance(999)
    expect([settled.mock.calls.length, signal?.aborted]).toEqual([0, false])
    await clock.advance(51)
    expect(await outcome).toEqual({
      kind: 'failed',
      failure: {
        code: 'HANDLER_TIMEOUT',
        message: expect.stringContaining('"billing" did not finish event'),
      },
      retry: { kind: 'by-policy' },
    })
    expect(signal?.reason).toBeInstanceOf(HandlerTimeoutError)
    expect([dispatcher.running, dispatcher.abandoned]).toEqual([0, 1])
  })

  test('finds its signal aborted even if it looks only afterwards', async () => {
    const { dispatcher, clock, contexts } = waiting()
    void dispatcher.dispatch(someDelivery())
    await clock.advance(1_100)
    expect(contexts[0]?.signal.aborted).toBe(true)
  })

  for (const succeeds of [true, false]) {
    test(`is ignored, and reported, when it ${succeeds ? 'succeeds' : 'fails'} later`, async () => {
      const { dispatcher, clock, gates, observed } = waiting()
      const outcome = dispatcher.dispatch(someDelivery())
      await clock.advance(1_100)
      await clock.advance(4_000)
      if (succeeds) gates[0]?.resolve()
      else gates[0]?.reject(new Error('late'))
      await clock.advance(0)
      expect(await outcome).toMatchObject({ failure: { code: 'HANDLER_TIMEOUT' } })
      expect(observed).toEqual([
        expect.objectContaining({
          kind: 'finishedLate',
          after: 'timeout',
          succeeded: succeeds,
          durationMs: 5_100,
        }),
      ])
      expect(dispatcher.abandoned).toBe(0)
    })
  }

  test('cannot write through its context any more', async () => {
    const services = { once: vi.fn(), complete: vi.fn(), publish: vi.fn() }
    const { dispatcher, clock, contexts } = waiting({ services })
    void dispatcher.dispatch(someDelivery())
    await clock.advance(1_100)
    const ctx = contexts[0] as HandlerContext
    await expect(ctx.once({}, async () => {})).rejects.toThrow(HandlerTimeoutError)
    await expect(ctx.complete({})).rejects.toThrow(HandlerTimeoutError)
    await expect(ctx.publish({}, 'OrderShipped', {})).rejects.toThrow(HandlerTimeoutError)
    for (const service of Object.values(services)) expect(service).not.toHaveBeenCalled()
  })

  test("E10 a user's classifier decides what a timeout means", async () => {
    const classify = createClassify(new ManualClock(), (thrown) =>
      thrown instanceof HandlerTimeoutError ? 'dead' : undefined,
    )
    const { dispatcher, clock } = waiting({ classify })
    const outcome = dispatcher.dispatch(someDelivery())
    await clock.advance(1_100)
    expect(await outcome).toMatchObject({ retry: { kind: 'never' } })
  })

  test('while it is still being read counts too, and its handler is never called', async () => {
    const handler = vi.fn()
    const gate = deferred()
    const { dispatcher, clock } = setup({
      reader: { read: (event) => gate.promise.then(() => event) },
      handlers: { OrderPlaced: handler },
    })
    const outcome = dispatcher.dispatch(someDelivery())
    await clock.advance(1_100)
    expect(await outcome).toMatchObject({ failure: { code: 'HANDLER_TIMEOUT' } })
    gate.resolve()
    await clock.advance(0)
    expect(handler).not.toHaveBeenCalled()
  })

  test('may run for ever when there is no timeout', async () => {
    const { dispatcher, clock, gates } = waiting({ timeoutMs: null })
    const outcome = dispatcher.dispatch(someDelivery())
    expect(clock.sleeping).toBe(0)
    await clock.advance(86_400_000)
    gates[0]?.resolve()
    expect(await outcome).toEqual({ kind: 'handled' })
  })
})

test('one timer serves all that run, each by its own start, and ends with the last', async () => {
  const { dispatcher, clock, gates } = waiting()
  const first = dispatcher.dispatch(someDelivery())
  await clock.advance(500)
  const second = dispatcher.dispatch(someDelivery())
  const third = dispatcher.dispatch(someDelivery())
  expect([clock.sleeping, dispatcher.running]).toEqual([1, 3])
  gates[1]?.resolve()
  expect(await second).toEqual({ kind: 'handled' })
  await clock.advance(550)
  expect(await first).toMatchObject({ failure: { code: 'HANDLER_TIMEOUT' } })
  expect(dispatcher.running).toBe(1)
  await clock.advance(500)
  expect(await third).toMatchObject({ failure: { code: 'HANDLER_TIMEOUT' } })
  await clock.advance(1_000)
  expect(clock.sleeping).toBe(0)
  void dispatcher.dispatch(someDelivery())
  expect(clock.sleeping).toBe(1)
})

describe('an interruption', () => {
  const stopping = new WorkerStoppingError()

  test('at shutdown aborts the signals and gives the deliveries back, whether the handlers react or not', async () => {
    const { dispatcher, contexts, observed, gates, clock } = waiting()
    const outcomes = [dispatcher.dispatch(someDelivery()), dispatcher.dispatch(someDelivery())]
    const signal = contexts[0]?.signal
    expect(dispatcher.interrupt(stopping)).toBe(2)
    for (const outcome of outcomes) expect(await outcome).toEqual({ kind: 'interrupted' })
    expect(signal?.reason).toBe(stopping)
    expect([dispatcher.running, dispatcher.abandoned]).toEqual([0, 2])
    gates[0]?.resolve()
    await clock.advance(0)
    expect(observed).toEqual([expect.objectContaining({ kind: 'finishedLate', after: 'interruption' })])
  })

  test('with grace lets a handler finish that never looked at its signal', async () => {
    const { dispatcher, clock, gates } = waiting()
    const outcomes = [dispatcher.dispatch(someDelivery()), dispatcher.dispatch(someDelivery())]
    dispatcher.interrupt(stopping, { graceMs: 200 })
    gates[0]?.resolve()
    expect(await outcomes[0]).toEqual({ kind: 'handled' })
    await clock.advance(200)
    expect(await outcomes[1]).toEqual({ kind: 'interrupted' })
  })

  test('is never success for a handler that could have heard it and returned early: nothing is lost', async () => {
    const { dispatcher, clock } = setup({
      handlers: {
        OrderPlaced: (_event, ctx) =>
          new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve())),
      },
    })
    const outcome = dispatcher.dispatch(someDelivery())
    dispatcher.interrupt(stopping, { graceMs: 200 })
    await clock.advance(0)
    expect(await outcome).toEqual({ kind: 'interrupted' })
  })

  test('is success for a handler that had completed its delivery in its own transaction', async () => {
    const gate = deferred()
    const { dispatcher, clock } = setup({
      services: { once: vi.fn(), complete: async () => {}, publish: vi.fn() },
      handlers: {
        OrderPlaced: async (_event, ctx) => {
          await ctx.complete({})
          expect(ctx.signal.aborted).toBe(false)
          await gate.promise
        },
      },
    })
    const outcome = dispatcher.dispatch(someDelivery())
    await clock.advance(0)
    dispatcher.interrupt(stopping, { graceMs: 200 })
    gate.resolve()
    expect(await outcome).toEqual({ kind: 'handled', completed: true })
  })

  test("turns whatever the handler throws afterwards into an interruption: not the event's fault", async () => {
    const { dispatcher, gates } = waiting()
    const outcome = dispatcher.dispatch(someDelivery())
    dispatcher.interrupt(stopping, { graceMs: 200 })
    gates[0]?.reject(new DOMException('aborted', 'AbortError'))
    expect(await outcome).toEqual({ kind: 'interrupted' })
  })

  test('of one delivery, whose lease is lost, leaves the others alone', async () => {
    const { dispatcher, gates } = waiting()
    const [lost, kept] = [someDelivery({ position: '1' }), someDelivery({ position: '2' })]
    const outcomes = [dispatcher.dispatch(lost), dispatcher.dispatch(kept)]
    const reason = new LeaseLostError({ eventId: lost.event.eventId, subscription: 'billing' })
    expect(dispatcher.interrupt(reason, { which: (delivery) => delivery === lost })).toBe(1)
    expect(await outcomes[0]).toEqual({ kind: 'interrupted' })
    gates[1]?.resolve()
    expect(await outcomes[1]).toEqual({ kind: 'handled' })
  })

  test('during the reading never counts as handled', async () => {
    const handler = vi.fn()
    const gate = deferred()
    const { dispatcher } = setup({
      reader: { read: (event) => gate.promise.then(() => event) },
      handlers: { OrderPlaced: handler },
    })
    const outcome = dispatcher.dispatch(someDelivery())
    dispatcher.interrupt(stopping, { graceMs: 200 })
    gate.resolve()
    expect(await outcome).toEqual({ kind: 'interrupted' })
    expect(handler).not.toHaveBeenCalled()
  })

  test('a second one, without grace, ends what the first still waited for', async () => {
    const { dispatcher, clock } = waiting()
    const outcome = dispatcher.dispatch(someDelivery())
    dispatcher.interrupt(stopping, { graceMs: 10_000 })
    dispatcher.interrupt(stopping)
    expect(await outcome).toEqual({ kind: 'interrupted' })
    await clock.advance(20_000)
    expect([dispatcher.running, dispatcher.abandoned]).toEqual([0, 1])
  })

  test('whose grace outlasts the timeout still spends no attempt', async () => {
    const { dispatcher, clock } = waiting()
    const outcome = dispatcher.dispatch(someDelivery())
    dispatcher.interrupt(stopping, { graceMs: 10_000 })
    await clock.advance(2_000)
    expect(await outcome).toEqual({ kind: 'interrupted' })
    await clock.advance(20_000)
    expect(dispatcher.abandoned).toBe(1)
  })
})
