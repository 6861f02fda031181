import { expect, test } from 'vitest'
import { type AlertOptions, alertProblems, resolveAlertOptions } from '../../src/alert/alert-options.ts'
import { emailSink } from '../../src/alert/sinks/email-sink.ts'
import { logSink } from '../../src/alert/sinks/log-sink.ts'
import { pagerDutySink } from '../../src/alert/sinks/pager-duty-sink.ts'
import { slackSink } from '../../src/alert/sinks/slack-sink.ts'
import { webhookSink } from '../../src/alert/sinks/webhook-sink.ts'
import { silentLogger } from '../../src/observe/logger.ts'
import { recordingSink } from './support.ts'

const sink = recordingSink()

test("D7 the defaults are the seeds'", () => {
  const { routes, rules, ...rest } = resolveAlertOptions({}, sink)
  expect(rules).toEqual({
    deadLetter: true,
    unresolved: 10,
    stuckPending: 100,
    stuckAfterMs: 300_000,
    unpublished: 1_000,
    oldestPendingMs: 60_000,
    dead: 10,
    meanRetries: 1,
    eventsPerSecond: 1_000,
    workerMissingMs: 60_000,
    streamGapMs: 600_000,
  })
  expect(rest).toEqual({
    language: 'en',
    source: 'commitpost',
    everyMs: 60_000,
    reportEveryMs: 600_000,
    coolDownMs: 900_000,
    timeoutMs: 5_000,
    attempts: 3,
  })
  expect(routes).toMatchObject([{ sink }])
})

test('reports go to the log and to routes that ask for them', () => {
  const plain = { send: async () => {} }
  const rulesOf = (options: AlertOptions) =>
    resolveAlertOptions(options, logSink(silentLogger)).routes.map(({ rules }) => rules.includes('report'))
  expect(rulesOf({})).toEqual([true])
  expect(rulesOf({ sinks: [plain, { sink: plain, rules: ['report'] }] })).toEqual([false, true])
})

test.each([
  [5, 'alerts must be an object, but is 5'],
  [{ sink: [] }, 'there is no option "sink"; did you mean "sinks"?'],
  [{ sinks: 'slack' }, 'sinks must be a list of sinks, such as [slackSink({ url })]'],
  [{ sinks: [null] }, 'sinks[0] must be a sink, such as slackSink({ url }), or { sink, rules }'],
  [
    { sinks: [{ sink, rules: [] }] },
    'sinks[0].rules must be a list of at least one rule, but is a list of 0',
  ],
  [{ sinks: [{ sink: {}, rules: ['dead'] }] }, 'sinks[0].sink must be a sink'],
  [{ sinks: [{ sink, rules: ['dea'] }] }, "sinks[0].rules[0] must be one of 'deadLetter'"],
  [{ language: 'de' }, "language must be one of 'en', 'ko', but is \"de\""],
  [{ source: '' }, 'source must be text that is not empty, but is ""'],
  [{ source: 'x'.repeat(101) }, 'source must be at most 100 characters long, but is 101'],
  [{ deadLetter: 1 }, 'deadLetter must be true or false, but is 1'],
  [{ unresolved: 0 }, 'unresolved must be a whole number from 1 to 100000, but is 0'],
  [{ unpublished: -1 }, 'unpublished must be a whole number from 0 to 100000, but is -1'],
  [{ meanRetries: Number.NaN }, 'meanRetries must be a number from 0 to 100000, but is NaN'],
  [{ everyMs: 1 }, 'everyMs must be a whole number from 50'],
  [{ everyMs: null }, 'everyMs must be a whole number from 50'],
  [{ reportEveryMs: '10m' }, 'reportEveryMs must be a whole number from 50'],
  [{ attempts: 0 }, 'attempts must be a whole number from 1 to 10, but is 0'],
  [{ timeoutMs: 60_001 }, 'timeoutMs must be a whole number from 1 to 60000, but is 60001'],
])('%j: %s', (options, problem) => {
  expect(alertProblems(options)).toEqual([expect.stringContaining(problem)])
})

test('all problems are told at once, and null switches a rule off', () => {
  expect(alertProblems({ language: 'x', attempts: 'y' })).toHaveLength(2)
  expect(alertProblems({ unresolved: null, dead: null, meanRetries: null, reportEveryMs: null })).toEqual([])
})

const SECRET = 'https//hooks.example/SECRET'

test.each([
  ['slackSink', () => slackSink({ url: SECRET })],
  ['slackSink', () => slackSink(undefined as never)],
  ['slackSink', () => slackSink('https://hooks.example/SECRET' as never)],
  ['pagerDutySink', () => pagerDutySink('SECRET' as never)],
  ['slackSink', () => slackSink({ url: 'https://a.example', channel: '#ops' } as never)],
  ['webhookSink', () => webhookSink({ url: SECRET, secret: 'a secret of enough length' })],
  ['webhookSink', () => webhookSink({ url: 'https://a.example', secret: 'SECRET' })],
  ['webhookSink', () => webhookSink(null as never)],
  ['pagerDutySink', () => pagerDutySink({ routingKey: 'SECRET with spaces' })],
  ['pagerDutySink', () => pagerDutySink({ routingKey: 'R1', url: `ftp://${SECRET}` })],
  ['emailSink', () => emailSink({ transport: {} as never, from: 'a', to: 'b' })],
  ['emailSink', () => emailSink({ transport: { sendMail: async () => 1 }, from: 'a\nBcc: c', to: [] })],
  ['logSink', () => logSink({} as never)],
])('%s refuses what cannot work, without telling a secret', (name, make) => {
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }) as Error)
  expect(make).toThrow(name)
  expect(make).not.toThrow('SECRET')
})
