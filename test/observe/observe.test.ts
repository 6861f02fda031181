import { describe, expect, test } from 'vitest'
import { logObserver } from '../../src/observe/log-observer.ts'
import {
  eventFields,
  jsonLineLogger,
  type Logger,
  silentLogger,
  withFields,
} from '../../src/observe/logger.ts'
import { combineObservers, ignoreWorkerEvents, type WorkerEvent } from '../../src/observe/worker-events.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { someEvent } from '../dispatch/support.ts'

const about = { subscription: 'billing', event: someEvent(), attempt: 2, maxAttempts: 5 }
const failure = { code: 'ECONNRESET', message: 'socket hang up' }

// A record, so that a new kind of event cannot be forgotten here.
const SAMPLES: { readonly [Kind in WorkerEvent['kind']]: Extract<WorkerEvent, { kind: Kind }> } = {
  started: { kind: 'started', workerId: 'w', subscriptions: ['billing'] },
  stopping: { kind: 'stopping', workerId: 'w', inHand: 3 },
  stopped: { kind: 'stopped', workerId: 'w', released: 1 },
  claimed: { kind: 'claimed', subscription: 'billing', count: 9, suspects: 0, durationMs: 2, deliveries: [] },
  handled: { kind: 'handled', durationMs: 4, ...about },
  retried: { kind: 'retried', failure, delayMs: 1_000, durationMs: 4, ...about },
  dead: { kind: 'dead', failure, durationMs: 4, ...about },
  released: { kind: 'released', why: 'interrupted', delayMs: 0, ...about },
  leaseLost: { kind: 'leaseLost', ...about },
  finishedLate: { kind: 'finishedLate', after: 'timeout', succeeded: true, durationMs: 9, ...about },
  recovered: { kind: 'recovered', subscription: 'billing', count: 2, suspects: 2, dead: 0 },
  joiningWaits: {
    kind: 'joiningWaits',
    subscriptions: ['billing'],
    waitsFor: { pid: 4711, name: 'report', seconds: 90 },
  },
  retired: { kind: 'retired', subscription: 'billing', retiredBy: 'kim' },
  streaming: { kind: 'streaming', subscription: 'billing' },
  streamGap: { kind: 'streamGap', subscription: 'billing', reason: 'slot-missing' },
  streamRecovered: { kind: 'streamRecovered', subscription: 'billing', count: 3 },
  redriven: {
    kind: 'redriven',
    subscription: 'billing',
    policy: 'transient-errors',
    count: 3,
    leftToPerson: 1,
  },
  retained: { kind: 'retained', policy: 'month', stream: 'shop.*', deleted: 3, archived: 0 },
  unmatched: { kind: 'unmatched', event: someEvent() },
  error: { kind: 'error', during: 'claim', error: new Error('gone'), subscription: 'billing' },
}

describe('the log of a worker', () => {
  for (const sample of Object.values(SAMPLES)) {
    test(`has a line for "${sample.kind}"${'event' in sample ? ', with all fields of E15' : ''}`, () => {
      const lines: string[] = []
      logObserver(jsonLineLogger((line) => lines.push(line), new ManualClock()))(sample)
      expect(lines).toHaveLength(1)
      const line = JSON.parse(lines[0] as string) as Record<string, unknown>
      expect(line['msg']).toEqual(expect.any(String))
      if ('event' in sample) expect(line).toMatchObject(eventFields(sample.event))
      expect(lines[0]).not.toContain('never logged')
    })
  }

  test('E15 an event without a trace says so instead of leaving the field out', () => {
    expect(eventFields(someEvent({ headers: {} }))).toEqual({
      traceId: null,
      eventId: someEvent().eventId,
      stream: 'shop.order.event',
      eventType: 'OrderPlaced',
      aggregateType: 'order',
      aggregateId: '42',
    })
  })

  test('E15 a claim has a line for each event, whose event is not even read where nobody wants it', () => {
    const lines: string[] = []
    const logger = jsonLineLogger((line) => lines.push(line))
    const [first, second] = [someEvent({ aggregateId: '1' }), someEvent({ aggregateId: '2' })]
    const taken = { attempt: 1, maxAttempts: 5, suspect: false }
    const deliveries = [first, second].map((event) => ({ ...taken, event }))
    logObserver(logger)({ ...SAMPLES.claimed, deliveries })
    const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(written).toMatchObject([
      { msg: 'deliveries claimed', level: 'debug' },
      { msg: 'event claimed', level: 'debug', subscription: 'billing', ...taken, ...eventFields(first) },
      { msg: 'event claimed', level: 'debug', subscription: 'billing', ...taken, ...eventFields(second) },
    ])
    const unread = {
      ...taken,
      get event(): never {
        throw new Error('read although nobody wants it')
      },
    }
    const quiet: Logger = { ...logger, isLevelEnabled: (level) => level !== 'debug' }
    logObserver(quiet)({ ...SAMPLES.claimed, deliveries: [unread] })
    logObserver(quiet)(SAMPLES.handled)
    expect(lines).toHaveLength(3)
  })

  test('E15 an error that is about one event carries its fields', () => {
    const lines: string[] = []
    const event = someEvent()
    logObserver(jsonLineLogger((line) => lines.push(line)))({ ...SAMPLES.error, event })
    expect(JSON.parse(lines[0] as string)).toMatchObject({ ...eventFields(event), during: 'claim' })
  })

  test('failures are warnings while there is hope and errors when there is none', () => {
    const levelOf = (event: WorkerEvent): unknown => {
      let level: unknown
      const logger = jsonLineLogger((line) => {
        level = (JSON.parse(line) as Record<string, unknown>)['level']
      })
      logObserver(logger)(event)
      return level
    }
    expect(levelOf(SAMPLES.handled)).toBe('debug')
    expect(levelOf(SAMPLES.retried)).toBe('warn')
    expect(levelOf(SAMPLES.retired)).toBe('warn')
    expect(levelOf(SAMPLES.dead)).toBe('error')
  })
})

describe('loggers', () => {
  test('a JSON line has time, level and message, which fields cannot forge', () => {
    const lines: string[] = []
    const logger = jsonLineLogger(
      (line) => lines.push(line),
      new ManualClock(new Date('2026-01-01T00:00:00Z')),
    )
    logger.info({ level: 'forged', n: 10n, err: new TypeError('x') }, 'hello\nworld')
    expect(lines).toEqual([
      '{"time":"2026-01-01T00:00:00.000Z","level":"info","msg":"hello\\nworld","n":"10","err":"TypeError: x"}',
    ])
  })

  test('fields that cannot be written cost the fields, not the line', () => {
    const lines: string[] = []
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    jsonLineLogger((line) => lines.push(line), new ManualClock()).error(circular, 'still here')
    expect(lines[0]).toContain('still here')
  })

  test('a logger whose lines need their this, as pino has, keeps it', () => {
    class Counting {
      lines: object[] = []
      debug(fields: object): void {
        this.lines.push(fields)
      }
      info(fields: object): void {
        this.debug(fields)
      }
      warn(fields: object): void {
        this.debug(fields)
      }
      error(fields: object): void {
        this.debug(fields)
      }
    }
    const logger = new Counting()
    const child: Logger = withFields(logger, { a: 1 })
    child.debug({ b: 2 }, 'x')
    expect(logger.lines).toEqual([{ b: 2, a: 1 }])
    expect(child.isLevelEnabled?.('debug')).toBe(true)
    const quiet = { ...silentLogger, isLevelEnabled: (level: string) => level === 'error' }
    expect(withFields(quiet, { a: 1 }).isLevelEnabled?.('debug')).toBe(false)
  })

  test('silence stays silence', () => {
    expect(withFields(silentLogger, { a: 1 })).toBe(silentLogger)
    silentLogger.error({}, 'nothing')
  })
})

describe('observers', () => {
  test('one that throws, at once or later, harms neither the others nor the caller', async () => {
    const seen: string[] = []
    const observer = combineObservers([
      () => {
        throw new Error('broken')
      },
      async () => Promise.reject(new Error('broken later')),
      (event) => seen.push(event.kind),
    ])
    observer(SAMPLES.handled)
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual(['handled'])
  })

  test('none is recognisable as none', () => {
    expect(combineObservers([])).toBe(ignoreWorkerEvents)
    expect(combineObservers([ignoreWorkerEvents])).toBe(ignoreWorkerEvents)
    ignoreWorkerEvents(SAMPLES.handled)
  })
})
