import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startFaultProxy } from './fault-proxy.ts'

async function connectThrough(url: string): Promise<{ client: pg.Client; closed: Promise<unknown> }> {
  const client = new pg.Client({ connectionString: url, query_timeout: 300 })
  const closed = new Promise((resolve) => client.on('error', resolve))
  await client.connect()
  return { client, closed }
}

test('a proxy that is left alone passes everything on', async () => {
  const url = inject('databaseUrl')
  await using proxy = await startFaultProxy(url)
  const { client } = await connectThrough(proxy.urlOf(url))

  const { rows } = await client.query<{ text: string }>(`select repeat('x', 1000000) as text`)

  expect(rows[0]?.text.length).toBe(1_000_000)
  expect(proxy.open).toBe(1)
  await client.end()
})

test('cutting ends open connections, and refusing turns new ones away until they are accepted again', async () => {
  const url = inject('databaseUrl')
  await using proxy = await startFaultProxy(url)
  const { closed } = await connectThrough(proxy.urlOf(url))

  proxy.refuse()

  expect(await closed).toBeInstanceOf(Error)
  await expect(connectThrough(proxy.urlOf(url))).rejects.toThrow()
  expect(proxy.refused).toBe(1)
  proxy.accept()
  const { client } = await connectThrough(proxy.urlOf(url))
  expect((await client.query('select 1')).rowCount).toBe(1)
  await client.end()
})

test('a silent connection answers nothing and does not close', async () => {
  const url = inject('databaseUrl')
  await using proxy = await startFaultProxy(url)
  const { client, closed } = await connectThrough(proxy.urlOf(url))

  expect(proxy.silence()).toBe(1)

  await expect(client.query('select 1')).rejects.toThrow('Query read timeout')
  expect(proxy.open).toBe(1)
  proxy.cut()
  await closed
})

test.each([
  { part: 'request', kept: 0 },
  { part: 'reply', kept: 1 },
] as const)(
  'losing the $part of a COMMIT cuts the connection there and nowhere before',
  async ({ part, kept }) => {
    const url = inject('databaseUrl')
    await using proxy = await startFaultProxy(url)
    const direct = new pg.Client({ connectionString: url })
    await direct.connect()
    const table = `commit_${part}_${process.pid}`
    await direct.query(`create table ${table} (n integer)`)
    const { client } = await connectThrough(proxy.urlOf(url))
    const cut = proxy.loseNextCommit(part)

    await client.query('begin')
    await client.query(`insert into ${table} values ($1)`, [1])
    await expect(client.query('commit')).rejects.toThrow()
    await cut

    expect((await direct.query(`select n from ${table}`)).rowCount).toBe(kept)
    await direct.query(`drop table ${table}`)
    await direct.end()
  },
)

test('what is swallowed gets no answer, old connections and new ones alike, and is reset in the end', async () => {
  const url = inject('databaseUrl')
  await using proxy = await startFaultProxy(url)
  const { client, closed } = await connectThrough(proxy.urlOf(url))

  proxy.swallow()

  await expect(client.query('select 1')).rejects.toThrow('Query read timeout')
  const late = new pg.Client({ connectionString: proxy.urlOf(url), connectionTimeoutMillis: 300 })
  await expect(late.connect()).rejects.toThrow('timeout')
  proxy.accept()
  await closed
  const again = await connectThrough(proxy.urlOf(url))
  expect((await again.client.query('select 1')).rowCount).toBe(1)
  await again.client.end()
})

test('losing the next reply cuts the connection after the statement was done; taken back, nothing is lost', async () => {
  const url = inject('databaseUrl')
  await using proxy = await startFaultProxy(url)
  const { client, closed } = await connectThrough(proxy.urlOf(url))
  const witness = new pg.Client({ connectionString: url })
  await witness.connect()
  const table = `lost_reply_${process.pid}`
  await witness.query(`create table ${table} (n integer)`)

  const lost = proxy.loseNextReply()
  await expect(client.query(`insert into ${table} values (1)`)).rejects.toThrow()
  await Promise.all([lost, closed])

  expect((await witness.query(`select n from ${table}`)).rows).toEqual([{ n: 1 }])
  const next = await connectThrough(proxy.urlOf(url))
  void proxy.loseNextReply()
  proxy.loseNothing()
  expect((await next.client.query('select 1')).rowCount).toBe(1)
  await witness.query(`drop table ${table}`)
  await Promise.all([witness.end(), next.client.end()])
})
