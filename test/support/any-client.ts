import type pg from 'pg'
import type { Transaction } from '../../src/store/transaction.ts'

/** Runs single statements as if a pool were a transaction, each committed by itself. */
export function onAnyClient(pool: pg.Pool): Transaction {
  return { query: (text, params = []) => pool.query(text, [...params]) }
}
