import pg from 'pg'

/** A pool whose connections may break at any time, as those of a careful application: nobody is told, nothing ends. */
export function sturdyPool(config: pg.PoolConfig): pg.Pool {
  const ignore = (): void => undefined
  const pool = new pg.Pool(config)
  pool.on('error', ignore)
  // A server may end a connection in the same breath in which it accepts it, before whoever asked for it can listen.
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}
