import type { Hazard } from './support.ts'

/** Statements as they would be if they waited for the rows that they try to lock. */
export const waitingForLocks = (text: string): string =>
  text.replaceAll(/where d\.ctid = r\.tid([^]*?)for update skip locked/g, 'where d.ctid = r.tid$1for update')

/** A person looks at deliveries in psql, with a lock. */
export async function lock(
  h: Hazard,
  ...positions: readonly number[]
): Promise<{ readonly unlock: () => Promise<unknown> }> {
  const client = await h.connect('psql')
  await client.query('begin')
  await client.query('select 1 from outbox_delivery where id = any ($1::bigint[]) for update', [positions])
  return { unlock: () => client.query('rollback') }
}

/** A person looks at the first one. */
export const lockFirst = (h: Hazard): ReturnType<typeof lock> => lock(h, 1)
