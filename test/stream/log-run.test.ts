import { expect, test } from 'vitest'
import type { DeliveryOutcome, Settlement } from '../../src/delivery/delivery.ts'
import { ignoreWorkerEvents } from '../../src/observe/worker-events.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { SoloGate } from '../../src/runtime/gate.ts'
import { nextTurn } from '../../src/runtime/turn.ts'
import type { GateAnswer, LoggedEvent, ParkedEvent, StreamLease } from '../../src/store/stream-store.ts'
import { LogRun } from '../../src/stream/log-run.ts'
import { LogWindow } from '../../src/stream/log-window.ts'
import { type LogPlace, mergePlaces } from '../../src/stream/progress-recorder.ts'
import { comes } from '../support/patience.ts'

const NONE_OPEN: GateAnswer = {
  held: true,
  paused: false,
  hasOpen: false,
  openKeys: new Set(),
  settled: new Set(),
}

function logged(n: number, key: string): LoggedEvent {
  const event = {
    eventId: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    position: String(n),
    stream: 's',
    type: 't',
    schemaVersion: 1,
    aggregateType: 'a',
    aggregateId: key,
    orderingKey: key,
    sequence: null,
    payload: n,
    headers: {},
    occurredAt: new Date(0),
    createdAt: new Date(0),
  }
  return { ...event, xid: n, mayStandIn: false, bytes: 100, event }
}

const LEASE: StreamLease = {
  subscriptionId: 1,
  workerId: 'w',
  epoch: '1',
  generation: 1,
  maxAttempts: 5,
  scope: { wants: () => true },
  parkedTo: '0',
  walAt: 0n,
  crashes: 0,
}

interface Scene {
  ask?: (keys: readonly string[]) => Promise<GateAnswer>
  park?: (events: readonly ParkedEvent[]) => Promise<boolean>
  isGood?: () => boolean
  fails?: (n: number) => boolean
  lease?: Partial<StreamLease>
}

function runOf(scene: Scene) {
  const started: number[] = []
  const parked: ParkedEvent[] = []
  const passed: number[] = []
  const failures: unknown[] = []
  const run = new LogRun<number>({
    store: {
      streamGate: (_, keys) => scene.ask?.(keys) ?? Promise.resolve(NONE_OPEN),
      parkEvents: async (_, events) => {
        const isOurs = (await scene.park?.(events)) ?? true
        if (isOurs) parked.push(...events)
        return isOurs
      },
    },
    lease: { ...LEASE, ...scene.lease },
    subscription: 's',
    orderBy: 'aggregate',
    concurrency: 10,
    together: false,
    parkedTo: 0n,
    dispatch: ({ event }): DeliveryOutcome => {
      started.push(Number(event.position))
      const failure = { code: 'X', message: 'x' }
      return scene.fails?.(Number(event.position)) === true
        ? { kind: 'failed', failure, retry: { kind: 'by-policy' } }
        : { kind: 'handled' }
    },
    decide: (_, outcome): Settlement =>
      outcome.kind === 'failed' ? { kind: 'retry', delayMs: 10, failure: outcome.failure } : { kind: 'done' },
    isGood: scene.isGood ?? (() => true),
    mergePlaces: (_, later) => later,
    onPassed: (places) => passed.push(...places),
    onFailed: (error) => failures.push(error),
    soloGate: new SoloGate(),
    clock: systemClock,
    observer: ignoreWorkerEvents,
  })
  return { run, started, parked, passed, failures }
}

test('nothing starts under a lease that was not confirmed in time, and what waited starts once it is', async () => {
  let isGood = false
  let asked = 0
  const ask = async (): Promise<GateAnswer> => {
    asked += 1
    return NONE_OPEN
  }
  const { run, started, passed } = runOf({ isGood: () => isGood, ask })
  run.offer(logged(1, 'a'))
  run.mark(1)
  await comes('it was asked', () => asked === 1)
  run.offer(logged(2, 'b'))
  run.mark(2)
  await comes('it was asked again', () => asked === 2)
  expect({ started, passed }).toEqual({ started: [], passed: [] })
  isGood = true
  run.confirmed()
  await run.empty()
  expect(started).toEqual([1, 2])
})

test('a place is passed when everything before it has ended, and not before what failed is written down', async () => {
  let write: () => void = () => undefined
  const written = new Promise<void>((resolve) => {
    write = resolve
  })
  const { run, passed, started } = runOf({ fails: (n) => n === 2, park: () => written.then(() => true) })
  for (const n of [1, 2, 3]) {
    run.offer(logged(n, `k${n}`))
    run.mark(n)
  }
  await comes('all were tried', () => started.length === 3)
  expect(passed).toEqual([1])
  write()
  await run.empty()
  expect(passed).toEqual([1, 2, 3])
})

test('later events of a key that is on its way to the database are set aside, though the database did not know yet', async () => {
  const answers: ((answer: GateAnswer) => void)[] = []
  const ask = (): Promise<GateAnswer> => new Promise((resolve) => answers.push(resolve))
  let write: () => void = () => undefined
  const written = new Promise<void>((resolve) => {
    write = resolve
  })
  const { run, parked, started } = runOf({
    fails: (n) => n === 1,
    ask,
    park: () => written.then(() => true),
  })
  run.offer(logged(1, 'a'))
  await comes('the first question', () => answers.length === 1)
  run.offer(logged(2, 'a'))
  run.offer(logged(3, 'b'))
  answers[0]?.(NONE_OPEN)
  await comes('the second question', () => answers.length === 2)
  write()
  await comes('the first is written', () => parked.length === 1)
  // This answer was given before that: it does not know of the key.
  answers[1]?.(NONE_OPEN)
  await run.empty()
  expect(started).toEqual([1, 3])
  expect(parked.map(({ position, kind }) => [position, kind])).toEqual([
    ['1', 'retry'],
    ['2', 'wait'],
  ])
})

test('after readers vanished again and again, what they may have had in hand is left to the queue', async () => {
  const { run, parked, started } = runOf({ lease: { crashes: 2 } })
  run.offer(logged(1, 'a'))
  run.offer(logged(2, 'b'))
  await run.empty()
  expect({ started, parked: parked.map(({ position }) => position) }).toEqual({
    started: [],
    parked: ['1', '2'],
  })
})

test.each([
  { what: 'asking', scene: { ask: async () => ({ ...NONE_OPEN, held: false }) } },
  { what: 'setting aside', scene: { park: async () => false, fails: () => true } },
])('that the lease is another’s, learned by $what, ends it and passes nothing', async ({ scene }) => {
  const { run, passed, failures } = runOf(scene)
  run.offer(logged(1, 'a'))
  run.mark(1)
  await comes('it is told', () => failures.length > 0)
  expect(failures).toMatchObject([{ code: 'LEASE_LOST' }])
  expect(passed).toEqual([])
  await run.stop()
})

test('what is answered after it was stopped is not acted on: nobody waits for it to be set aside', async () => {
  const answers: ((answer: GateAnswer) => void)[] = []
  const ask = (): Promise<GateAnswer> => new Promise((resolve) => answers.push(resolve))
  const { run, parked, started } = runOf({ ask })
  run.offer(logged(1, 'a'))
  await comes('the question', () => answers.length === 1)
  await run.stop()
  answers[0]?.({ ...NONE_OPEN, hasOpen: true, openKeys: new Set(['a']) })
  await nextTurn()
  expect([parked, started]).toEqual([[], []])
})

test('no place is passed that comes after it was stopped: what came with it was not handed over', async () => {
  let answer: (given: GateAnswer) => void = () => undefined
  const ask = (): Promise<GateAnswer> =>
    new Promise((resolve) => {
      answer = resolve
    })
  const { run, passed } = runOf({ ask })
  run.mark(1)
  await run.stop()
  run.offer(logged(2, 'a'))
  run.mark(2)
  answer(NONE_OPEN)
  await run.empty()
  expect(passed).toEqual([1])
})

test('any number of commits that hold nothing for it, behind an event in hand, take no memory', () => {
  const window = new LogWindow<LogPlace>(mergePlaces)
  const entry = window.add(logged(1, 'a'))
  window.mark({ lsn: 1n, snapshot: null })
  window.mark({ lsn: 2n, snapshot: '5:5:' })
  for (let lsn = 3n; lsn <= 1_000n; lsn += 1n) window.mark({ lsn, snapshot: null })
  window.add(logged(2, 'b'))
  window.mark({ lsn: 1_001n, snapshot: null })
  window.end(entry)
  // With the snapshot that travelled between them.
  expect(window.passed()).toEqual([{ lsn: 1_000n, snapshot: '5:5:' }])
})
