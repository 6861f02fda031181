import { type AlertSink, emailSink, pagerDutySink, slackSink, webhookSink } from '../../../src/index.ts'
import { deafUrl } from '../../alert/receiver.ts'
import { borne, type Group, invalid, type Refusal, wrong } from '../row.ts'
import type { Scene } from '../scene.ts'

const monitorOf = (does: string, says: string, options: unknown): Refusal =>
  invalid(`outbox.monitor(${does})`, says, ({ outbox }) => outbox.monitor(wrong(options)))

const workerOf = (does: string, says: string, alerts: unknown): Refusal =>
  invalid(`outbox.worker(…, { alerts: ${does} })`, says, ({ outbox }) =>
    outbox.worker([outbox.subscription('s', { on: { OrderPlaced: () => undefined } })], {
      alerts: wrong(alerts),
    }),
  )

const sinkOf = (does: string, says: string, make: () => unknown): Refusal => invalid(does, says, make)

/** A dead letter of an event without a subscription, and what telling of it through the sink came to, in all looks. */
async function toldThrough({ pool, outbox }: Scene, sink: AlertSink, looks = 1): Promise<object> {
  await pool.query('update outbox_dead_letter set told_at = now()') // of those from other rows
  await pool.query(
    `insert into outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
            aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count)
     values ('(none)', 1, gen_random_uuid(), 's', E'T\\nBcc: x', 1, 'a', 'b', '{}', '{}', now(), 'BOOM', '<!here>', 0)`,
  )
  await using monitor = outbox.monitor({
    sinks: [{ sink, rules: ['deadLetter'] }],
    attempts: 1,
    timeoutMs: 100,
  })
  const rounds = []
  for (let look = 0; look < looks; look += 1) rounds.push(await monitor.check())
  const [told, untold] = [rounds.flatMap((round) => round.told), rounds.flatMap((round) => round.untold)].map(
    (list) => list.filter(({ rule }) => rule === 'deadLetter'),
  )
  await pool.query(
    `update outbox_dead_letter set resolved = true, resolved_at = now(), resolved_by = 'kim' where stream = 's'`,
  )
  await pool.query(`delete from outbox_dead_letter where stream = 's'`)
  return { told: told?.length, untold: untold?.length }
}

const NOBODY_TOLD = { told: 0, untold: 1 }

export const alerts: Group = {
  title: 'Alerts',
  rows: [
    monitorOf('null', 'the options must be an object, but is null', null),
    monitorOf('{ unresolve: 3 }', 'there is no option "unresolve"; did you mean "unresolved"?', {
      unresolve: 3,
    }),
    monitorOf("{ sinks: 'slack' }", 'sinks must be a list of sinks', { sinks: 'slack' }),
    monitorOf('{ sinks: [{}] }', 'sinks[0] must be a sink, such as slackSink({ url })', { sinks: [{}] }),
    monitorOf("{ sinks: [{ sink, rules: ['deads'] }] }", 'sinks[0].rules[0] must be one of', {
      sinks: [{ sink: { send: async () => undefined }, rules: ['deads'] }],
    }),
    monitorOf('{ dead: 1.5 }', 'dead must be a whole number from 0 to 100000, but is 1.5', { dead: 1.5 }),
    monitorOf("{ language: 'fr' }", "language must be one of 'en', 'ko', but is \"fr\"", { language: 'fr' }),
    workerOf('true', 'alerts must be an object, but is true', true),
    workerOf("{ everyMs: '1m' }", 'everyMs must be a whole number', { everyMs: '1m' }),
    sinkOf(
      "slackSink({ url: 'hooks.slack.com/…' })",
      'url must be an address that begins with https://',
      () => slackSink({ url: 'hooks.slack.com/services/T0/SECRET' }),
    ),
    sinkOf('slackSink()', 'the argument must be an object: { url }', () => slackSink(wrong(undefined))),
    sinkOf("slackSink('https://…')", 'the argument must be an object: { url }', () =>
      slackSink(wrong('https://hooks.slack.com/services/T0/SECRET')),
    ),
    sinkOf("pagerDutySink({ routingKey: '' })", 'routingKey must be the integration key', () =>
      pagerDutySink({ routingKey: '' }),
    ),
    sinkOf("webhookSink({ url, secret: 'short' })", 'secret must be a text of at least 16 characters', () =>
      webhookSink({ url: 'https://example.com', secret: 'short' }),
    ),
    sinkOf("emailSink({ …, to: 'a\\r\\nBcc: b' })", 'to must be on one line', () =>
      emailSink({ transport: { sendMail: async () => undefined }, from: 'a', to: 'a\r\nBcc: b' }),
    ),
    borne(
      'a Slack address where nobody listens',
      'the alert counts as not sent, and the next look tries again',
      { told: 0, untold: 2 },
      async (scene) => toldThrough(scene, slackSink({ url: await deafUrl() }), 2),
    ),
    borne('a sink that never answers', 'it is given up after its time', NOBODY_TOLD, (scene) =>
      toldThrough(scene, { send: () => new Promise(() => {}) }),
    ),
    borne('a sink that throws at once', 'the alert counts as not sent', NOBODY_TOLD, (scene) =>
      toldThrough(scene, {
        send: () => {
          throw new Error('boom')
        },
      }),
    ),
    borne('a sink that returns no promise', 'the alert counts as sent', { told: 1, untold: 0 }, (scene) =>
      toldThrough(scene, { send: wrong(() => undefined) }),
    ),
  ],
}
