import { describe, expect, test } from 'vitest'
import { BatchDispatcher } from '../../src/dispatch/batch-dispatcher.ts'
import type { TransportSession } from '../../src/dispatch/transport.ts'
import { clock, event, kinds, until } from './support.ts'

describe('a dispatcher of batches', () => {
  const delivery = (n: number) => ({
    event: event({ eventId: `e${n}` }),
    attempt: 1,
    maxAttempts: 5,
    lease: null,
  })

  test('sends what comes in one turn together, and what comes meanwhile in the next batch', async () => {
    const batches: number[] = []
    const answers: (() => void)[] = []
    const session: TransportSession = {
      send: (events) => {
        batches.push(events.length)
        return new Promise((resolve) => {
          answers.push(() => resolve(events.map(() => ({ kind: 'handled' }))))
        })
      },
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 4 })
    const first = [1, 2, 3].map((n) => dispatcher.dispatch(delivery(n) as never))
    await until(() => batches.length === 1)
    const second = [4, 5, 6, 7, 8].map((n) => dispatcher.dispatch(delivery(n) as never))
    expect(dispatcher.running).toBe(8)
    answers[0]?.()
    expect(kinds(await Promise.all(first))).toEqual(['handled', 'handled', 'handled'])
    await until(() => batches.length === 2)
    answers[1]?.()
    await until(() => batches.length === 3)
    answers[2]?.()
    await Promise.all(second)
    expect([batches, dispatcher.running]).toEqual([[3, 4, 1], 0])
  })

  test('sends the next batch before it tells of the last, and prepares the one after it meanwhile', async () => {
    const order: string[] = []
    const answers: (() => void)[] = []
    const session: TransportSession = {
      send: (events) => {
        order.push(`send ${events.map(({ eventId }) => eventId).join(' ')}`)
        return new Promise((resolve) => {
          answers.push(() => resolve(events.map(() => ({ kind: 'handled' }))))
        })
      },
      prepare: ({ eventId }) => void order.push(`prepare ${eventId}`),
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 2 })
    const outcomes = [1, 2, 3, 4, 5].map(async (n) => {
      await dispatcher.dispatch(delivery(n) as never)
      order.push(`told e${n}`)
    })
    await until(() => order.length === 3)
    answers[0]?.()
    await until(() => order.length === 7)
    answers[1]?.()
    await until(() => order.length === 10)
    answers[2]?.()
    await Promise.all(outcomes)
    expect(order).toEqual([
      'send e1 e2',
      'prepare e3',
      'prepare e4',
      'send e3 e4',
      'told e1',
      'told e2',
      'prepare e5',
      'send e5',
      'told e3',
      'told e4',
      'told e5',
    ])
  })

  test('interrupts some of a batch that waits, and sends the others again', async () => {
    const batches: (readonly string[])[] = []
    const session: TransportSession = {
      send: async (events, signal) => {
        batches.push(events.map(({ eventId }) => eventId))
        if (batches.length > 1) return events.map(() => ({ kind: 'handled' }))
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve)
        })
        return events.map(() => ({ kind: 'interrupted' }))
      },
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 10 })
    const given = [1, 2, 3].map(
      (n) => ({ ...delivery(n), event: event({ eventId: `e${n}`, orderingKey: `k${n}` }) }) as never,
    )
    const outcomes = given.map((each) => dispatcher.dispatch(each))
    await until(() => batches.length === 1)
    expect(dispatcher.interrupt(new Error('lost'), { which: (each) => each === given[1] })).toBe(1)
    expect(kinds(await Promise.all(outcomes))).toEqual(['handled', 'interrupted', 'handled'])
    expect(batches).toEqual([
      ['e1', 'e2', 'e3'],
      ['e1', 'e3'],
    ])
  })

  test('gives back what is handed over behind an event of its key that was not sent, before that is known', async () => {
    const sent: string[] = []
    const session: TransportSession = {
      send: async (events) => {
        sent.push(...events.map(({ eventId }) => eventId))
        return events.map(({ eventId }) =>
          eventId === 'e2'
            ? { kind: 'failed', failure: { code: 'C', message: 'm' }, retry: { kind: 'by-policy' } }
            : { kind: 'handled' },
        )
      },
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 2 })
    const other = { ...delivery(1), event: event({ eventId: 'e1', orderingKey: 'other' }) }
    // Whoever is told of the first outcome hands over the next one at once, before it knows of the second.
    const chained = dispatcher.dispatch(other as never).then(() => dispatcher.dispatch(delivery(4) as never))
    const outcomes = [2, 3].map((n) => dispatcher.dispatch(delivery(n) as never))
    expect(kinds(await Promise.all([...outcomes, chained]))).toEqual(['failed', 'interrupted', 'interrupted'])
    expect(sent).toEqual(['e1', 'e2'])
    await new Promise((resolve) => setImmediate(resolve))
    expect(await dispatcher.dispatch(delivery(5) as never)).toEqual({ kind: 'handled' })
  })

  test('a transport that throws fails the attempts of its batch', async () => {
    const session: TransportSession = {
      send: () => Promise.reject(new Error('a bug')),
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 10 })
    expect(await dispatcher.dispatch(delivery(1) as never)).toMatchObject({
      kind: 'failed',
      failure: { code: 'TRANSPORT_ERROR', message: expect.stringContaining('a bug') },
    })
  })

  test('an event that cannot be prepared is sent all the same, and others are prepared', async () => {
    const sent: (readonly string[])[] = []
    const prepared: string[] = []
    const session: TransportSession = {
      send: async (events) => {
        sent.push(events.map(({ eventId }) => eventId))
        if (sent.length === 1) await until(() => prepared.length === 2)
        return events.map(() => ({ kind: 'handled' }))
      },
      prepare: ({ eventId }) => {
        prepared.push(eventId)
        if (eventId === 'e3') throw new TypeError('a bug')
      },
      close: async () => {},
    }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 2 })
    const outcomes = [1, 2, 3, 4].map((n) => dispatcher.dispatch(delivery(n) as never))
    expect(kinds(await Promise.all(outcomes))).toEqual(Array(4).fill('handled'))
    const both = ['e3', 'e4']
    expect({ sent, prepared }).toEqual({ sent: [['e1', 'e2'], both], prepared: both })
  })

  test('a transport that answers with no list fails the attempts of its batch, and is asked for the next', async () => {
    const answers: unknown[] = [undefined, [{ kind: 'handled' }]]
    const session: TransportSession = { send: async () => answers.shift() as never, close: async () => {} }
    const dispatcher = new BatchDispatcher({ session, clock, batchSize: 1 })
    expect(await dispatcher.dispatch(delivery(1) as never)).toMatchObject({
      kind: 'failed',
      failure: { code: 'TRANSPORT_ERROR' },
      retry: { kind: 'by-policy' },
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(await dispatcher.dispatch(delivery(2) as never)).toEqual({ kind: 'handled' })
  })
})
