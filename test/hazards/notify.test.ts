import { describe, expect, test } from 'vitest'
import { wakeChannel } from '../../src/store/postgres/wake-channel.ts'
import { join } from '../store/contract/helpers.ts'

import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { type Hazard, hazard, publish } from './support.ts'

/** What everybody thinks of first: the trigger tells the workers. */
async function notifyInTrigger(h: Hazard): Promise<void> {
  await h.db.pool.query(
    `create function tell() returns trigger language plpgsql as $$
       begin perform pg_notify('${wakeChannel(h.db.quoted)}', 'by the trigger'); return null; end $$;
     create trigger tell after insert on outbox_event for each statement execute function tell()`,
  )
}

/** Publishes, and returns what a listener heard of it before a word of the test's own. */
async function heardOfPublishing(h: Hazard): Promise<readonly string[]> {
  const channel = wakeChannel(h.db.quoted)
  const listener = await h.connect('listener')
  const heard: string[] = []
  const done = new Promise<void>((resolve) => {
    listener.on('notification', ({ payload = '' }) => {
      if (payload === 'done') resolve()
      else heard.push(payload)
    })
  })
  await listener.query(`listen ${channel}`)
  await publish(h.db.pool, ['a', 'b'])
  await h.db.pool.query(`select pg_notify('${channel}', 'done')`)
  await done
  return heard
}

/** Publishes from many connections at once until told to stop; each transaction is short. */
function publishForEver(h: Hazard, isOver: () => boolean): Promise<unknown> {
  const publisher = async (n: number): Promise<void> => {
    const client = await h.connect(`publisher ${n}`)
    while (!isOver()) await publish(client, ['a'])
  }
  return Promise.all(Array.from({ length: 8 }, (_, n) => publisher(n)))
}

/** True when a connection of this test has, or waits for, the lock of NOTIFY: one for the whole cluster. */
const isSerialised = (h: Hazard): Promise<boolean> =>
  one(
    h.db.pool,
    `select exists (select 1 from pg_locks l join pg_stat_activity a using (pid)
      where l.locktype = 'object' and l.classid = 'pg_database'::regclass and l.objid = 0
        and a.application_name like $1)`,
    [`${h.db.schema} publisher%`],
  )

describe('publishing', () => {
  test('commits while another publisher has not: neither waits for the other', async () => {
    await using h = await hazard()
    await join(h.worker('w').store, { orderBy: 'aggregate' })
    const [open, other] = [await h.connect('open'), await h.connect('other')]
    await open.query('begin')
    await publish(open, ['a'])
    await other.query(`set lock_timeout = '1s'`)
    await publish(other, ['a'])
    await open.query('commit')
    expect(await one(h.db.pool, 'select count(*)::int from outbox_delivery')).toBe(2)
  })

  test('notifies nobody in the business transaction, and so takes no lock that serialises commits', async () => {
    await using h = await hazard()
    await join(h.worker('w').store)
    expect(await heardOfPublishing(h)).toEqual([])
    let looks = 0
    const publishing = publishForEver(h, () => looks >= 100)
    for (; looks < 100; looks += 1) expect(await isSerialised(h)).toBe(false)
    await publishing
  })

  test('with a notification in the trigger tells, and serialises all commits', async () => {
    await using h = await hazard()
    await notifyInTrigger(h)
    await join(h.worker('w').store)
    expect(await heardOfPublishing(h)).toEqual(['by the trigger'])
    let seen = false
    const publishing = publishForEver(h, () => seen)
    await eventually('commits wait for each other', async () => {
      seen = await isSerialised(h)
      return seen
    })
    await publishing
  })
})
