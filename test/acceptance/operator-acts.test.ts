import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OperatorAct } from '../../src/index.ts'
import { completeOrders, openShop, processor, type Shop, SOON } from './dlq-system.ts'
import { eventually, rejection } from './support.ts'

const KIM = { operator: 'kim', note: 'by phone' } as const
const MAILER = 'outbox-event-processor'

let shop: Shop
let letterId: string
let planId: string

/** One dead letter that is resolved, and one that keeps the next event of its key waiting; nobody is at work. */
beforeEach(async () => {
  shop = await openShop()
  const refuse = (): never => {
    throw new Error('the stock service refused')
  }
  const worker = await shop.run([processor(refuse, { ...SOON, order: 'aggregate', maxAttempts: 1 })])
  const { deadLetters, redrive } = shop.outbox
  await completeOrders(shop, [1, 2, 2])
  await eventually('both are dead', async () => (await deadLetters.count()) === 2)
  await worker.stop()
  const [open, closed] = await deadLetters.list()
  letterId = open?.id ?? ''
  await deadLetters.resolve(closed?.id ?? '', KIM)
  planId = (await redrive.plan()).id
})
afterEach(async () => {
  await shop[Symbol.asyncDispose]()
})

const ACTS: Readonly<Record<string, (act: OperatorAct) => Promise<unknown>>> = {
  retry: (act) => shop.outbox.deadLetters.retry(letterId, act),
  resolve: (act) => shop.outbox.deadLetters.resolve(letterId, act),
  amend: (act) => shop.outbox.deadLetters.amend(letterId, { orderId: 3 }, act),
  purge: (act) => shop.outbox.deadLetters.purge({ olderThan: '1ms' }, act),
  reveal: (act) => shop.outbox.deadLetters.show(letterId, { reveal: act }),
  'cancel a plan': (act) => shop.outbox.redrive.cancel(planId, act),
  'move aside': (act) => shop.outbox.moveAside(MAILER, 'Order:2', act),
  pause: (act) => shop.outbox.pause(MAILER, act),
  retire: (act) => shop.outbox.retire(MAILER, { discard: true, ...act }),
}

const TABLES = [
  'event',
  'delivery',
  'dead_letter',
  'subscription',
  'redrive_plan',
  'redrive_item',
  'operator_log',
]

/** All that an act could change. */
const everything = (): Promise<readonly unknown[]> =>
  Promise.all(
    TABLES.map((table) => shop.rows(`select to_jsonb(t)::text as row from outbox_${table} t order by 1`)),
  )

describe.each(Object.entries(ACTS))('the act of an operator: %s', (_, act) => {
  test('D3 L11 is refused without a name, and is one with its record: without that nothing is changed', async () => {
    const before = await everything()
    expect(await rejection(act({ operator: ' ' }))).toMatchObject({ code: 'INVALID_OPTIONS' })
    await shop.pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no log today'; end $$;
      create trigger refuse before insert on outbox_operator_log for each row execute function refuse()`)
    expect((await rejection(act(KIM))).message).toContain('no log today')
    expect(await everything()).toEqual(before)

    await shop.pool.query('drop trigger refuse on outbox_operator_log')
    await act(KIM)
    const [entry] = await shop.rows(
      'select operator, note, at, affected from outbox_operator_log order by id desc',
    )
    expect(entry).toEqual({
      operator: KIM.operator,
      note: expect.stringContaining(KIM.note),
      at: expect.any(Date),
      affected: expect.any(Number),
    })
    expect(await everything()).not.toEqual(before)
  })
})

/** Steps of the functions that call them, which have asked, and of policies: no role may call these. */
const INNER = [
  'outbox_close_dead_letter',
  'outbox_deliver_again',
  'outbox_drive_next',
  'outbox_step_retention',
]

const NOBODY = "an operator's name is needed"
const NO_PERSON = 'an operator is a person: "policy:" stands before the names of policies'

test.each([
  [' ', NOBODY],
  ['\t', NOBODY],
  ['\n', NOBODY],
  ['policy:x', NO_PERSON],
  ['\tpolicy:x', NO_PERSON],
])(
  'D3 E12 no function for psql takes an act without the name of a person: %j is none',
  async (given, says) => {
    const functions = await shop.rows<{ name: string; call: string }>(
      `select p.proname as name, format('select %I(%s)', p.proname, string_agg(format('%I => %s', a.name,
            case when a.name = 'operator' then quote_literal($3) when a.type = 'jsonb'::regtype then quote_literal('{}')
                 else 'null::' || format_type(a.type, null) end), ', ')) as call
       from pg_proc p
      cross join lateral unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) as a(name, type)
      where p.pronamespace = $1::regnamespace and 'operator' = any (p.proargnames[1:p.pronargs])
        and p.proname <> all ($2)
      group by p.oid, p.proname order by 1`,
      [shop.schema, INNER, given],
    )
    const refusals = await Promise.all(functions.map(({ call }) => rejection(shop.pool.query(call))))
    expect(refusals.map(({ message }, n) => `${functions[n]?.name}: ${message}`)).toEqual(
      functions.map(({ name }) => `${name}: ${says}`),
    )
    expect(functions.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['outbox_move_aside', 'outbox_retry', 'outbox_set_paused']),
    )
  },
)

test.each([' ', '\t', '\n'])(
  'D3 E12 the log of acts itself takes none without a name: %j is none',
  async (blank) => {
    const insert = `insert into outbox_operator_log (operator, action, target, affected) values ($1, 'pause', '{}', 1)`
    expect((await rejection(shop.pool.query(insert, [blank]))).message).toContain('check constraint')
  },
)
