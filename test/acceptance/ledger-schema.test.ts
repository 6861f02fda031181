import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  assertCompatible,
  type Catalogue,
  checkCatalogue,
  createOutbox,
  defineEvents,
  IncompatibleCatalogueError,
  type StandardSchemaV1,
  snapshotText,
  subscription,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { eventually, openSystem } from './support.ts'

const v1 = { transactionId: z.string(), accountId: z.string(), amount: z.number() }

const ledger = <Schema>(schema: Schema & StandardSchemaV1, more: object = {}) =>
  defineEvents({
    LedgerPosted: {
      stream: 'ledger-events',
      aggregate: 'TRANSACTION',
      storedAs: 'LEDGER_POSTED',
      schema,
      ...more,
    },
  })

const first = ledger(z.object(v1))
const snapshot = snapshotText(first)
const posting = { transactionId: 'tx-1', accountId: 'acc-1', amount: 100 }

const breaking = (catalogue: Catalogue): readonly string[] =>
  checkCatalogue(catalogue, snapshot)
    .findings.filter((finding) => finding.breaking)
    .map(({ event, path }) => `${event} ${path}`)

describe('schema evolution of the ledger', () => {
  test('L5 a field may be added as optional', () => {
    const next = ledger(z.object({ ...v1, channel: z.string().optional() }))
    expect(checkCatalogue(next, snapshot)).toMatchObject({ compatible: true, upToDate: false })
    expect(() => assertCompatible(next, snapshot)).not.toThrow()
  })

  test.each([
    [
      'a field that is added as required',
      z.object({ ...v1, channel: z.string() }),
      'LedgerPosted payload.channel',
    ],
    [
      'a field that is removed',
      z.object({ transactionId: z.string(), accountId: z.string() }),
      'LedgerPosted payload.amount',
    ],
    ['a field whose type changes', z.object({ ...v1, amount: z.string() }), 'LedgerPosted payload.amount'],
    [
      'a field that is renamed',
      z.object({ transactionId: z.string(), account: z.string().optional(), amount: z.number() }),
      'LedgerPosted payload.accountId',
    ],
  ])('L5 %s is refused by the compatibility check', (_, schema, where) => {
    const next = ledger(schema)
    expect(breaking(next)).toContain(where)
    expect(() => assertCompatible(next, snapshot)).toThrow(IncompatibleCatalogueError)
  })

  test('L5 an event type that is removed or stored under another name is refused', () => {
    const renamed = defineEvents({
      LedgerPosted: {
        stream: 'ledger-events',
        aggregate: 'TRANSACTION',
        storedAs: 'POSTED',
        schema: z.object(v1),
      },
    })
    expect(breaking(renamed)).toEqual(['LedgerPosted storedAs'])
    expect(breaking(defineEvents({}))).toEqual(['LedgerPosted name'])
  })

  test('L5 older code reads newer events: what it does not know it ignores', async () => {
    const newer = ledger(z.object({ ...v1, channel: z.string().optional() }), { version: 2 })
    await using system = await openSystem(newer)
    const old = createOutbox({
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      events: first,
    })
    const seen: unknown[] = []
    await using worker = old.worker([
      subscription('read-model', { on: { LedgerPosted: (event) => void seen.push(event.payload) } }),
    ])
    await worker.start()
    await system.publish('LedgerPosted', { aggregateId: 'tx-1', payload: { ...posting, channel: 'MOBILE' } })
    await eventually('the old code has read it', () => seen.length === 1)
    expect(seen).toEqual([posting])
    expect(await system.rows('select schema_version, payload from outbox_event')).toEqual([
      { schema_version: 2, payload: { ...posting, channel: 'MOBILE' } },
    ])
  })

  test('L5 a change that breaks is accepted with an upcaster, and stored events reach the new code in the new form', async () => {
    const toMinorUnits = (old: { amount?: unknown }) => ({
      ...old,
      amount: { minor: Number(old.amount) * 100, currency: 'KRW' },
    })
    const next = ledger(z.object({ ...v1, amount: z.object({ minor: z.int(), currency: z.string() }) }), {
      version: 2,
      upcast: { 1: toMinorUnits },
    })
    expect(breaking(next)).toEqual([])
    await using system = await openSystem(first)
    await (await system.run([subscription('read-model', { on: { LedgerPosted: () => {} } })])).stop()
    // PENDING when the new version is deployed.
    await system.publish('LedgerPosted', { aggregateId: 'tx-1', payload: posting })
    const deployed = createOutbox({
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      events: next,
    })
    const seen: unknown[] = []
    await using worker = deployed.worker([
      subscription('read-model', {
        on: { LedgerPosted: (event) => void seen.push([event.schemaVersion, event.payload]) },
      }),
    ])
    await worker.start()
    await eventually('the new code has read it', () => seen.length === 1)
    expect(seen).toEqual([[2, { ...posting, amount: { minor: 10_000, currency: 'KRW' } }]])
    // What was written stays as it was written.
    expect(await system.rows('select schema_version, payload from outbox_event')).toEqual([
      { schema_version: 1, payload: posting },
    ])
  })

  test('L5 an event that failed under the old code is upcast too when an operator retries it', async () => {
    const failing = ledger(z.object(v1))
    await using system = await openSystem(failing)
    const old = await system.run([
      subscription('read-model', {
        maxAttempts: 1,
        on: {
          LedgerPosted: () => {
            throw new Error('amounts without a currency are not supported')
          },
        },
      }),
    ])
    const eventId = await system.publish('LedgerPosted', { aggregateId: 'tx-1', payload: posting })
    await system.untilStatus(eventId, 'DEAD')
    await old.stop()
    const next = ledger(z.object({ ...v1, currency: z.string() }), {
      version: 2,
      upcast: { 1: (payload: object) => ({ ...payload, currency: 'KRW' }) },
    })
    const deployed = createOutbox({
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      events: next,
    })
    const seen: unknown[] = []
    await using worker = deployed.worker([
      subscription('read-model', { on: { LedgerPosted: (event) => void seen.push(event.payload) } }),
    ])
    await worker.start()
    const [letter] = await deployed.deadLetters.list()
    await deployed.deadLetters.retry(letter?.id ?? '', { operator: 'dding94' })
    await eventually('it is read', () => seen.length === 1)
    expect(seen).toEqual([{ ...posting, currency: 'KRW' }])
  })
})
