import type { Hazard } from './support.ts'

/** Statements as they would be if they waited for the rows that they try to lock. */
export const waitingForLocks = (text: string): string =>
  text.replaceAll(/where d\.id = r\.id([^]*?)for update skip locked/g, 'where d.id = r.id$1for update')

/** A place in statements where they wait, having seen what they see, and before they lock any of it. */
export interface Gate {
  /** Statements that wait after this condition. */
  after(condition: string): (text: string) => string
  open(): Promise<unknown>
}

/** A gate that is shut. */
export async function shutGate(h: Hazard): Promise<Gate> {
  const keeper = await h.connect('gate')
  const key = `hashtext('${h.db.schema}')`
  await keeper.query(`select pg_advisory_lock(${key})`)
  return {
    after: (condition) => (text) =>
      text.replaceAll(
        condition,
        `${condition} and (select pg_advisory_xact_lock_shared(${key})) is not null`,
      ),
    open: () => keeper.query(`select pg_advisory_unlock(${key})`),
  }
}

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
