import type pg from 'pg'

/** What a role or a database may have set for its other users: nothing that a worker could live with. */
export const HOSTILE_SETTINGS: Readonly<Record<string, string>> = {
  default_transaction_isolation: 'serializable',
  default_transaction_read_only: 'on',
  statement_timeout: '9s',
  lock_timeout: '1ms',
  idle_in_transaction_session_timeout: '10ms',
  synchronous_commit: 'off',
}

/** Sets them for everybody who connects as this role from now on. */
export async function setHostile(pool: pg.Pool, role: string): Promise<void> {
  for (const [name, value] of Object.entries(HOSTILE_SETTINGS)) {
    await pool.query(`alter role ${role} set ${name} = '${value}'`)
  }
}

/** Writes down, for each change of a delivery, under which settings it was made. */
export async function watchSettings(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`
    create table ${schema}.seen_settings (isolation text, read_only text, statement_ms text, lock_ms text, idle_ms text,
      durability text);
    create function ${schema}.see_settings() returns trigger language plpgsql security definer as $$
    begin
      insert into ${schema}.seen_settings
      select current_setting('transaction_isolation'), current_setting('transaction_read_only'),
             (select setting from pg_settings where name = 'statement_timeout'),
             (select setting from pg_settings where name = 'lock_timeout'),
             (select setting from pg_settings where name = 'idle_in_transaction_session_timeout'),
             current_setting('synchronous_commit');
      return null;
    end $$;
    create trigger see_settings after update on ${schema}.outbox_delivery
      for each statement execute function ${schema}.see_settings();`)
}

/** The settings that were seen, each combination once. */
export async function seenSettings(pool: pg.Pool, schema: string): Promise<readonly object[]> {
  const { rows } = await pool.query<object>(
    `select distinct * from ${schema}.seen_settings order by 1, 2, 3, 4, 5, 6`,
  )
  return rows
}

/** What a worker works with under hostile settings: short time-outs are long ones. */
export const FIT_SETTINGS: object = {
  isolation: 'read committed',
  read_only: 'off',
  statement_ms: '60000',
  lock_ms: '60000',
  idle_ms: '60000',
  durability: 'on',
}

/** The same while it settles what is done: it waits a moment for a row that is locked, and no longer. */
export const SETTLING_SETTINGS: object = { ...FIT_SETTINGS, lock_ms: '250' }
