import pg from 'pg'
import { expect, test } from 'vitest'
import { migrateUp } from '../../../src/store/postgres/migrate.ts'
import { migrationSql } from '../../../src/store/postgres/migration-sql.ts'
import { rolesSql } from '../../../src/store/postgres/roles.ts'
import { createTestDatabase } from '../../support/database.ts'

test('a database in another encoding is refused, with what to do about it', async () => {
  await using db = await createTestDatabase()
  const name = `${db.schema}_latin`
  await db.pool.query(`create database ${name} encoding 'LATIN1' locale 'C' template template0`)
  const url = new URL(db.url)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href })
  // Its connection may end by the drop sooner than by its own goodbye.
  pool.on('error', () => undefined)
  await expect(migrateUp(pool)).rejects.toMatchObject({
    message: 'commitpost needs a database in encoding UTF8, and this one is in LATIN1',
    hint: expect.stringContaining('UTF8'),
  })
  await pool.end()
  await db.pool.query(`drop database ${name} with (force)`)
})

test('all SQL of the schema is ASCII, which every encoding has', async () => {
  const texts = [
    await migrationSql({ schema: 'commitpost' }),
    await rolesSql({ schema: 'commitpost', prefix: 'shop' }),
  ]
  for (const text of texts) expect(text).toMatch(/^[\x20-\x7e\n]*$/)
  expect(texts[1]).not.toContain('commitpost_')
})
