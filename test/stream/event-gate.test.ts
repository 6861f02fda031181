import { expect, test } from 'vitest'
import type { GateAnswer, LoggedEvent, StreamLease } from '../../src/store/stream-store.ts'
import { EventGate } from '../../src/stream/event-gate.ts'
import type { LogEntry } from '../../src/stream/log-window.ts'

function entries(count: number): readonly LogEntry[] {
  return Array.from({ length: count }, (_, index) => {
    const event = { eventId: `e${index}`, position: String(index + 1) } as LoggedEvent
    return { event, key: null, mayStandIn: false, next: null, done: false, aside: false }
  })
}

function gateOf(openKeys: Set<string>) {
  const asked: { readonly keys: number; readonly doubtful: readonly string[] }[] = []
  const gate = new EventGate({
    store: {
      streamGate: async (_, keys, doubtful): Promise<GateAnswer> => {
        asked.push({ keys: keys.length, doubtful: doubtful.map(({ eventId }) => eventId) })
        const open = new Set(keys.filter((key) => openKeys.has(key)))
        return { held: true, paused: false, hasOpen: openKeys.size > 0, openKeys: open, settled: new Set() }
      },
    },
    lease: {} as StreamLease,
    keyOf: ({ position }) => `k${position}`,
  })
  return { gate, asked }
}

test('the keys of many events are named only where some key is open, and then until none is', async () => {
  const open = new Set<string>()
  const { gate, asked } = gateOf(open)
  expect((await gate.ask(entries(500), 0n)).openKeys.size).toBe(0)
  open.add('k7').add('another')
  expect([...(await gate.ask(entries(500), 0n)).openKeys]).toEqual(['k7'])
  expect([...(await gate.ask(entries(500), 0n)).openKeys]).toEqual(['k7'])
  open.clear()
  await gate.ask(entries(500), 0n)
  await gate.ask(entries(500), 0n)
  expect(asked.map(({ keys }) => keys)).toEqual([0, 0, 500, 500, 500, 0])
})

test('the keys of a few events are named at once', async () => {
  const { gate, asked } = gateOf(new Set(['k2']))
  expect([...(await gate.ask(entries(3), 0n)).openKeys]).toEqual(['k2'])
  expect(asked).toEqual([{ keys: 3, doubtful: [] }])
})

test('what may have a delivery already is asked about by its id', async () => {
  const { gate, asked } = gateOf(new Set())
  await gate.ask(entries(3), 2n)
  expect(asked).toEqual([{ keys: 3, doubtful: ['e0', 'e1'] }])
})
