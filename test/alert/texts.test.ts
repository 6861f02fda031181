import { describe, expect, test } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import { AlertComposer } from '../../src/alert/alert-composer.ts'
import { resolveAlertOptions } from '../../src/alert/alert-options.ts'
import { logSink } from '../../src/alert/sinks/log-sink.ts'
import { textBlock } from '../../src/alert/text-block.ts'
import { createMasking } from '../../src/event/masking.ts'
import type { Language } from '../../src/runtime/language.ts'
import { displayWidth } from '../../src/runtime/width.ts'
import type { UntoldLetter, UntoldLetters } from '../../src/store/alert-store.ts'
import { recordingLogger } from '../acceptance/support.ts'
import { figuresOf, recordingSink } from './support.ts'

const at = new Date('2026-11-16T03:04:05.000Z')

function composerIn(language: Language): AlertComposer {
  const options = resolveAlertOptions({ language, source: 'shop' }, recordingSink())
  return new AlertComposer({ options, masking: createMasking(null), newId: () => 'id' })
}

const letter: UntoldLetter = {
  id: '17',
  subscription: 'mailer',
  eventId: '01a1e1c7-5e93-776f-936a-babd9723946b',
  stream: 'shop.order',
  eventType: 'OrderCompleted',
  aggregateType: 'Order',
  aggregateId: '7',
  errorCode: 'HANDLER_ERROR',
  errorMessage: 'the stock service refused',
  retryCount: 4,
  failedAt: new Date('2026-11-16T03:04:00.000Z'),
  undeliverable: null,
  payload: {},
  headers: { traceId: 'trace-9' },
}
const apart: UntoldLetters = { ids: ['17'], letters: [letter], groups: [] }

const letterAlert = (language: Language): Alert => composerIn(language).letters(apart, at)[0] as Alert

describe('D5 the block of the log', () => {
  test('has what the seed shows, and what to do', () => {
    expect(textBlock(letterAlert('en'))).toBe(
      `===================== DLQ ALERT =====================
 OrderCompleted failed for good for subscription "mailer"
 Event ID     : 01a1e1c7-5e93-776f-936a-babd9723946b
 Event Type   : OrderCompleted
 Aggregate    : Order#7
 Subscription : mailer
 Retry Count  : 4
 Error        : HANDLER_ERROR: the stock service refused
 Failed At    : 2026-11-16T03:04:00.000Z
 Trace ID     : trace-9
 commitpost dlq show 17, then dlq retry 17 or dlq resolve 17
=====================================================`,
    )
  })

  test('stands straight in Korean too', () => {
    const lines = textBlock(letterAlert('ko')).split('\n')
    expect(lines[1]).toBe(' 구독 "mailer"에서 OrderCompleted 처리가 최종 실패했습니다')
    const columns = lines
      .filter((line) => line.includes(' : '))
      .map((line) => displayWidth(line.split(' : ')[0] ?? ''))
    expect(new Set(columns).size).toBe(1)
  })

  test('E15 is one line of the log, which carries the identity of the event', async () => {
    const { logger, lines } = recordingLogger()
    await logSink(logger).send(letterAlert('en'), new AbortController().signal)
    const { eventId, stream, eventType, aggregateType, aggregateId } = letter
    expect(lines).toMatchObject([
      {
        level: 'error',
        fields: { traceId: 'trace-9', eventId, stream, eventType, aggregateType, aggregateId },
      },
    ])
    expect(lines[0]?.message).toContain('DLQ ALERT')
  })
})

describe.each(['en', 'ko'] as const)('in %s', (language) => {
  const composer = composerIn(language)

  test('every condition has a sentence, advice and an end', () => {
    const rules = [
      'unresolved',
      'stuckPending',
      'unpublished',
      'oldestPending',
      'dead',
      'meanRetries',
      'eventRate',
      'workerMissing',
      'streamGap',
    ] as const
    for (const rule of rules) {
      const subscription =
        rule === 'unresolved' || rule === 'eventRate' ? null : figuresOf({ pausedBy: 'kim' })
      const key = subscription === null ? rule : `${rule}:mailer`
      const alarm = composer.alarm({ key, rule, subscription, value: 61_000, threshold: 60_000 }, at, at)
      const over = composer.recovered({ key, rule, since: at, told: true, toldAt: at }, at, at)
      for (const text of [alarm.title, alarm.advice, over.title]) {
        expect(text).toMatch(language === 'ko' ? /[가-힣]/ : /^[^가-힣]+$/)
        expect(text).not.toMatch(/undefined|NaN|null/)
      }
      expect(alarm.advice).not.toMatch(/(--subscription|retire) NAME/)
      if (subscription !== null) expect(`${alarm.title} ${over.title}`.match(/"mailer"/g)).toHaveLength(2)
    }
  })

  test('a log that nobody reads is told of as that, and a delivery that has waited longer as such', () => {
    const log = { silentSeconds: 90, gap: null, gapSeconds: null }
    const titleOf = (oldestPendingSeconds: number | null, value: number): string => {
      const subscription = figuresOf({ workers: 0, log, oldestPendingSeconds })
      const condition = { key: 'workerMissing:mailer', rule: 'workerMissing', threshold: 60_000 } as const
      return composer.alarm({ ...condition, value, subscription }, at, at).title
    }
    const unread =
      language === 'ko' ? '아무도 로그를 읽지 않았고' : 'nobody has read its log for 1 min 30 sec'
    const waits = language === 'ko' ? '가장 오래된 전달' : 'its oldest delivery has waited'
    expect(titleOf(null, 90_000)).toContain(unread)
    expect(titleOf(null, 90_000)).not.toContain(waits)
    expect(titleOf(100, 100_000)).toContain(waits)
  })

  test('who cannot retry is not told to', () => {
    const told = (undeliverable: UntoldLetter['undeliverable'], subscription: string): Alert =>
      composer.letters({ ...apart, letters: [{ ...letter, undeliverable, subscription }] }, at)[0] as Alert
    const unmatched = told('unmatched', '(none)')
    expect(unmatched.title).not.toContain('(none)')
    expect(unmatched.title).toContain(language === 'ko' ? '받는 구독이 없어' : 'No subscription takes')
    const retired = told('retired', 'mailer')
    expect(retired.title).toContain('"mailer"')
    for (const { advice } of [unmatched, retired]) {
      expect(advice).toMatch(/dlq resolve 17/)
      expect(advice).not.toContain('dlq retry')
      expect(advice).toContain(language === 'ko' ? '새 ID로 다시 발행' : 'publish it again under a new id')
    }
    expect(told(null, 'mailer').advice).toContain('dlq retry 17')
  })

  test('who looks at deliveries that wait because of a pause is told how to end it, not to start workers', () => {
    const waiting = (pausedBy: string | null): string | null => {
      const subscription = figuresOf({ pausedBy, pending: 1_001 })
      const condition = {
        key: 'unpublished:mailer',
        rule: 'unpublished',
        value: 1_001,
        threshold: 1_000,
      } as const
      return composer.alarm({ ...condition, subscription }, at, at).advice
    }
    expect(waiting('kim')).toContain('commitpost resume mailer --operator NAME')
    expect(waiting(null)).toContain('commitpost status')
  })

  test('a count that was broken off is told as more than its limit, in a sentence that reads well', () => {
    const subscription = figuresOf({ pending: 1_001 })
    const condition = {
      key: 'unpublished:mailer',
      rule: 'unpublished',
      value: 1_001,
      threshold: 1_000,
    } as const
    const { title, facts } = composer.alarm({ ...condition, subscription }, at, at)
    const more = language === 'ko' ? '1,000 초과' : 'more than 1,000'
    expect(title).toMatch(new RegExp(`: ${more}$`))
    expect(facts[1]?.value).toBe(more)
  })

  test('many letters, vanished workers and the report have lines for what they count', () => {
    const groups = Array.from({ length: 12 }, (_, n) => ({
      subscription: 'mailer',
      eventType: `T${n}`,
      errorCode: 'BOOM',
      count: 5,
    }))
    const ids = Array.from({ length: 60 }, (_, n) => String(n + 1))
    const [many] = composer.letters({ ids, letters: [], groups }, at)
    expect(many?.facts).toHaveLength(11)
    expect(many).toMatchObject({ key: 'deadLetter:1-60', data: { count: 60 } })
    const workers = [{ workerId: 'w1', host: 'h', pid: 4, lastSeenSeconds: 90, subscriptions: ['mailer'] }]
    expect(composer.vanished(workers, at)).toMatchObject([
      { rule: 'workerMissing', facts: [{ label: 'w1' }] },
    ])
    expect(composer.vanished([], at)).toEqual([])
    const oldest = {
      id: '17',
      eventType: 'T0',
      subscription: 'mailer',
      failedAt: new Date(at.getTime() - 90_000),
    }
    const report = composer.report(
      {
        letters: { count: 1_001, byType: [{ eventType: 'T0', count: 1_001 }], oldest },
        figures: { subscriptions: [figuresOf({ pending: 3, dead: 2 })], vanished: [], position: 9 },
        eventsPerSecond: 12,
      },
      at,
    )
    expect(report.facts).toHaveLength(4)
    expect(report.facts[0]?.value).toContain('1,000')
    expect(report.facts[2]?.value).toContain('17')
    expect(report.facts[3]?.label).toBe('mailer')
  })
})
