import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startFaultProxy } from './fault-proxy.ts'

/** With a time-out only where no answer is to be expected. */
async function connectThrough(
  url: string,
  options: { readonly query_timeout?: number } = {},
): Promise<{ client: pg.Client; closed: Promise<unknown> }> {
  const client = new pg.Client({ connectionString: url, ...options })
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
  const { client, closed } = await connectThrough(proxy.urlOf(url), { query_timeout: 300 })

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
  const { client, closed } = await connectThrough(proxy.urlOf(url), { query_timeout: 300 })

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

test('a silent connection whose server crashed is reset in the end, and does not keep the proxy from closing', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`
  const proxy = await startFaultProxy(url)
  const client = connect(proxy.port, '127.0.0.1')
  const reset = once(client, 'error')
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const crashed = once(accepted, 'close')

  proxy.silence()
  accepted.resetAndDestroy()
  await crashed
  // Another connection gets through after the reset has.
  const next = connect(proxy.port, '127.0.0.1')
  next.on('error', () => undefined)
  await once(server, 'connection')
  proxy.accept()

  await reset
  await proxy.close()
  server.close()
})
