import type { Pool } from 'pg'

/**
 * Makes the trigger function `refuse` let everything pass, while workers run. DROP TRIGGER would not do: it locks
 * every partition, and can meet a claim in a deadlock.
 */
export const stopRefusing = (pool: Pick<Pool, 'query'>): Promise<unknown> =>
  pool.query(
    'create or replace function refuse() returns trigger language plpgsql as $$ begin return new; end $$',
  )
