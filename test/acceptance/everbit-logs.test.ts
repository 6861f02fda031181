import { describe, expect, test } from 'vitest'
import { defineEvents, subscription } from '../../src/index.ts'
import { lapseLeases } from '../support/leases.ts'
import { stopRefusing } from '../support/stop-refusing.ts'
import { openEverbit } from './everbit-system.ts'
import { eventually, type LoggedLine, openSystem, recordingLogger, signal } from './support.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`

const backtest = (jobId: string) => ({ aggregateId: jobId, payload: { jobId }, traceparent })

/** What each line must carry, for the backtest with this job id. */
const fieldsOf = (jobId: string, eventId: string) => ({
  traceId: TRACE_ID,
  eventId,
  stream: 'everbit.backtest.command',
  eventType: 'RunBacktest',
  aggregateType: 'backtest_job',
  aggregateId: jobId,
})

const linesAbout = (lines: readonly LoggedLine[], eventId: string): readonly LoggedLine[] =>
  lines.filter(({ fields }) => JSON.stringify(fields).includes(eventId))

describe('logs of everbit', () => {
  test("E15 every line of an event's life carries its six fields: claimed, the handler's own, retried, handled, dead", async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    await everbit.run(
      [
        subscription('backtest', {
          maxAttempts: 2,
          retry: { delayMs: () => 3_600_000 },
          pollMs: 20,
          on: {
            RunBacktest: (event, ctx) => {
              ctx.log.info({ candles: 200 }, 'backtest runs')
              if (event.aggregateId === 'dies' || ctx.attempt === 1) throw new Error('no candles')
            },
          },
        }),
      ],
      { alerts: false },
    )
    const ids = {
      recovers: await everbit.publish('RunBacktest', backtest('recovers')),
      dies: await everbit.publish('RunBacktest', backtest('dies')),
    }
    // Without a pause another claim might bring one before the worker has heard that its failure is written.
    await eventually('both failures are logged', () => {
      return lines.filter(({ message }) => message === 'event failed and will be retried').length === 2
    })
    await everbit.passRetryDelays()
    await everbit.untilSettled()
    await eventually('both ends are logged', () => {
      return ['event handled', 'event failed for good and is a dead letter'].every((message) =>
        lines.some((line) => line.message === message),
      )
    })
    for (const [jobId, eventId] of Object.entries(ids)) {
      const about = linesAbout(lines, eventId)
      for (const { fields } of about) expect(fields).toMatchObject(fieldsOf(jobId, eventId))
      expect(about.map(({ message }) => message)).toEqual([
        'event claimed',
        'backtest runs',
        'event failed and will be retried',
        'event claimed',
        'backtest runs',
        jobId === 'dies' ? 'event failed for good and is a dead letter' : 'event handled',
      ])
    }
    // And nothing tells of an event without naming it.
    const others = lines.filter((line) => !Object.values(ids).some((id) => linesAbout([line], id).length > 0))
    expect(new Set(others.map(({ message }) => message))).toEqual(
      new Set(['worker started', 'deliveries claimed']),
    )
  })

  test('E15 the line about a lost lease carries them', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    const [started, released] = [signal(), signal()]
    const runs: string[] = []
    const worker = (name: string) =>
      everbit.outbox.subscription('backtest', {
        on: {
          RunBacktest: async () => {
            runs.push(name)
            if (runs.length > 1) return
            started.happen()
            await released.happened
          },
        },
      })
    // Leases long enough that no heartbeat comes between: the lease ends as it would for a process that slept.
    await everbit.runElsewhere([worker('asleep')], { leaseMs: 60_000 })
    const eventId = await everbit.publish('RunBacktest', backtest('job'))
    await started.happened
    const { rows } = await everbit.pool.query<{ worker: string }>(
      'select worker_id as worker from outbox_lease',
    )
    await lapseLeases(everbit.pool, rows[0]?.worker ?? '')
    await everbit.runElsewhere([worker('awake')], { leaseMs: 60_000 })
    await everbit.untilStatus(eventId, 'DONE')
    released.happen()
    await eventually('the loss is logged', () =>
      lines.some(({ message }) => message.startsWith('lease lost')),
    )
    expect(runs).toEqual(['asleep', 'awake'])
    const about = linesAbout(lines, eventId)
    expect(about.map(({ message }) => message).toSorted()).toEqual([
      'event claimed',
      'event claimed',
      'event handled',
      'lease lost: the result of this attempt was not written',
    ])
    for (const { fields } of about) expect(fields).toMatchObject(fieldsOf('job', eventId))
  })

  test('E15 the lines about a handler that finishes too late, and about one that was interrupted, carry them', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    const [started, released] = [signal(), signal()]
    const worker = await everbit.run([
      subscription('backtest', {
        timeoutMs: 100,
        retry: { delayMs: () => 600_000 },
        on: { RunBacktest: () => released.happened },
      }),
      subscription('system', {
        on: {
          KillSwitchEnabled: async () => {
            started.happen()
            await new Promise(() => {})
          },
        },
      }),
    ])
    const late = await everbit.publish('RunBacktest', backtest('late'))
    const stopped = await everbit.publish('KillSwitchEnabled', {
      aggregateId: 'OWNER',
      payload: { reason: 'manual' },
      traceparent,
    })
    await eventually('it has timed out', () =>
      lines.some(({ message }) => message.includes('will be retried')),
    )
    released.happen()
    await eventually('it came back', () =>
      lines.some(({ message }) => message.startsWith('handler finished too late')),
    )
    await started.happened
    await worker.stop({ drainMs: 0 })
    for (const { fields } of linesAbout(lines, late)) expect(fields).toMatchObject(fieldsOf('late', late))
    const fields = {
      traceId: TRACE_ID,
      eventId: stopped,
      stream: 'everbit.system.event',
      eventType: 'KillSwitchEnabled',
      aggregateType: 'owner',
      aggregateId: 'OWNER',
    }
    expect(linesAbout(lines, stopped)).toMatchObject([
      { message: 'event claimed', fields },
      { message: 'event given back without a verdict', fields },
    ])
  })

  test('E15 the line about an event that no subscription takes carries them', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    const system = () => everbit.outbox.subscription('system', { on: { KillSwitchEnabled: () => {} } })
    await (await everbit.run([system()])).stop()
    const eventId = await everbit.publish('RunBacktest', backtest('nobodys'))
    await everbit.run([system()])
    await eventually('it is reported', () => linesAbout(lines, eventId).length > 0)
    expect(linesAbout(lines, eventId)).toMatchObject([{ fields: fieldsOf('nobodys', eventId) }])
  })

  test('E15 an event that kills its worker again and again has a line of its own when it is dead', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    const poison = () =>
      everbit.outbox.subscription('backtest', { maxAttempts: 1, on: { RunBacktest: () => {} } })
    await (await everbit.run([poison()])).stop()
    const eventId = await everbit.publish('RunBacktest', backtest('poison'))
    await everbit.claimAndVanish('backtest')
    // Once among others, which makes it a suspect; once alone, which makes it guilty.
    await everbit.pool.query(`update outbox_delivery set suspect = true where status = 'PROCESSING'`)
    const worker = await everbit.run([poison()], { alerts: false })
    await everbit.untilStatus(eventId, 'DEAD')
    await worker.stop()
    expect(linesAbout(lines, eventId)).toMatchObject([
      { level: 'error', fields: fieldsOf('poison', eventId) },
    ])
    expect(await everbit.outbox.deadLetters.list()).toMatchObject([{ eventId, errorCode: 'CRASHED' }])
  })

  test('E15 the line about the claim of a suspect carries them, and says that it is one', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({ logger })
    const calm = () => everbit.outbox.subscription('backtest', { on: { RunBacktest: () => {} } })
    await (await everbit.run([calm()])).stop()
    const eventId = await everbit.publish('RunBacktest', backtest('innocent'))
    await everbit.claimAndVanish('backtest')
    const worker = await everbit.run([calm()])
    await everbit.untilStatus(eventId, 'DONE')
    await worker.stop()
    expect(linesAbout(lines, eventId)).toMatchObject([
      { message: 'event claimed', fields: { ...fieldsOf('innocent', eventId), suspect: true, attempt: 1 } },
      { message: 'event handled', fields: fieldsOf('innocent', eventId) },
    ])
  })

  test.each([
    ['claim', `new.status = 'PROCESSING'`],
    ['settle', `new.status = 'DONE'`],
  ])(
    'E15 the line about an event of which the database refuses to have the %s written carries them',
    async (during, when) => {
      const { logger, lines } = recordingLogger()
      await using everbit = await openEverbit({ logger })
      await everbit.run([
        everbit.outbox.subscription('backtest', { pollMs: 20, on: { RunBacktest: () => {} } }),
      ])
      await everbit.pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit says no'; end $$;
      create trigger refuse before update on outbox_delivery
        for each row when (${when}) execute function refuse()`)
      const eventId = await everbit.publish('RunBacktest', backtest('refused'))
      const refused = () =>
        lines.find(({ level, fields }) => level === 'error' && fields['during'] === during)
      await eventually('it is told', () => refused() !== undefined)
      expect(refused()).toMatchObject({
        fields: { ...fieldsOf('refused', eventId), subscription: 'backtest' },
      })
      await stopRefusing(everbit.pool)
    },
  )

  test('E15 a logger that wants no debug lines is given none', async () => {
    const { logger, lines } = recordingLogger()
    await using everbit = await openEverbit({
      logger: { ...logger, isLevelEnabled: (level) => level !== 'debug' },
    })
    await everbit.run([everbit.outbox.subscription('backtest', { on: { RunBacktest: () => {} } })])
    const eventId = await everbit.publish('RunBacktest', backtest('quiet'))
    await everbit.untilStatus(eventId, 'DONE')
    expect(lines.map(({ message }) => message)).toEqual(['worker started'])
  })

  test('E15 all lines about an event name its type alike, also where the table knows it by another name', async () => {
    const { logger, lines } = recordingLogger()
    const stored = defineEvents({
      OrderFilled: { stream: 'everbit.trade.event', aggregate: 'order_attempt', storedAs: 'ORDER_FILLED' },
    })
    await using system = await openSystem(stored, { logger })
    await system.run([
      subscription('notification', { on: { OrderFilled: (_event, ctx) => ctx.log.info({}, 'push sent') } }),
    ])
    const eventId = await system.publish('OrderFilled', { aggregateId: 'a', payload: {} })
    await eventually('its end is logged', () => lines.some(({ message }) => message === 'event handled'))
    expect(linesAbout(lines, eventId)).toHaveLength(3)
    expect(new Set(linesAbout(lines, eventId).map(({ fields }) => fields['eventType'])).size).toBe(1)
  })
})
