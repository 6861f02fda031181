import { describe, expect, test } from 'vitest'
import type { Transaction } from '../../src/index.ts'
import {
  createOutboxRepository,
  LeaseLostError,
  NotFoundError,
  type OutboxRepository,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { comes } from '../support/patience.ts'
import { type IngestRequest, type Ivm, type IvmEvents, openIvm, payloadOf, product } from './ivm-system.ts'
import { eventually, rejection } from './support.ts'

type Repository = OutboxRepository<IvmEvents, Transaction>

function openRepository(ivm: Ivm, options: { leaseMs?: number; maxAttempts?: number } = {}): Repository {
  return createOutboxRepository({
    outbox: ivm.outbox,
    store: postgresStore({ pool: ivm.pool, schema: ivm.schema }),
    subscription: 'polling-worker',
    retry: { delayMs: () => 0 },
    ...options,
  })
}

function insert(ivm: Ivm, repository: Repository, request: IngestRequest): Promise<string> {
  return ivm.outbox.inTransaction(ivm.pool, (tx) =>
    repository.insert(tx, {
      eventType: 'RawDataIngested',
      aggregateId: `${request.tenantId}:${request.entityKey}`,
      payload: payloadOf(request),
    }),
  )
}

/** What is found first, once something is. */
async function findSoon(repository: Repository): Promise<readonly string[]> {
  let found: readonly string[] = []
  await comes('something is found', async () => {
    found = (await repository.findPending(100)).map(({ id }) => id)
    return found.length > 0
  })
  return found
}

describe('the repository port of the RFC', () => {
  test('I2 what was inserted is found pending, and what was marked processed is not found again', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm)
    await repository.findPending(1)
    const ids = [
      await insert(ivm, repository, product),
      await insert(ivm, repository, { ...product, version: 2 }),
    ]
    const found = await repository.findPending(100)
    expect(found.map(({ id }) => id)).toEqual(ids)
    expect(found[0]).toMatchObject({
      id: ids[0],
      aggregateType: 'raw_data',
      aggregateId: 'tenant-1:product-123',
      eventType: 'RawDataIngested',
      payload: payloadOf(product),
      status: 'PENDING',
      processedAt: null,
      retryCount: 0,
    })
    expect(found[0]?.createdAt).toBeInstanceOf(Date)
    await repository.markProcessed(ids)
    expect(await repository.findPending(100)).toEqual([])
    expect(await ivm.count('outbox_delivery', "status = 'DONE' and processed_at is not null")).toBe(2)
  })

  test('I2 what was inserted before the first findPending is found', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm)
    const id = await insert(ivm, repository, product)
    expect(await findSoon(repository)).toEqual([id])
  })

  test('I2 what was being inserted during the first findPending is found once it is committed', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm)
    const id = await ivm.outbox.inTransaction(ivm.pool, async (tx) => {
      const inserted = await repository.insert(tx, {
        eventType: 'RawDataIngested',
        aggregateId: 'tenant-1:product-123',
        payload: payloadOf(product),
      })
      expect(await repository.findPending(100)).toEqual([])
      return inserted
    })
    expect(await findSoon(repository)).toEqual([id])
  })

  test('I2 a repository whose subscription was retired says so, and does not seem to have nothing to do', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm)
    await repository.findPending(1)
    const [status] = await ivm.outbox.status()
    await ivm.outbox.retire(status?.name ?? '', { operator: 'kim', force: true })
    await expect(repository.findPending(1)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(/was retired by kim/) as string,
    })
  })

  test('I2 findPending keeps to its limit, and two pollers never find the same entry', async () => {
    await using ivm = await openIvm()
    await using one = openRepository(ivm)
    await using other = openRepository(ivm)
    await one.findPending(1)
    const ids: string[] = []
    for (let version = 1; version <= 30; version += 1)
      ids.push(await insert(ivm, one, { ...product, version }))
    const found = await Promise.all([one.findPending(10), other.findPending(10), one.findPending(10)])
    expect(found.map((entries) => entries.length)).toEqual([10, 10, 10])
    expect(
      found
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(ids.toSorted())
  })

  test('I2 markFailed counts a retry, and the last one is FAILED with its reason', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm, { maxAttempts: 3 })
    await repository.findPending(1)
    const id = await insert(ivm, repository, product)
    for (const retryCount of [0, 1, 2]) {
      expect(await repository.findPending(100)).toMatchObject([{ id, retryCount }])
      await repository.markFailed(id, 'slicing failed: no such schema')
    }
    expect(await repository.findPending(100)).toEqual([])
    expect(await ivm.outbox.deadLetters.list()).toMatchObject([
      { eventId: id, retryCount: 2, errorMessage: expect.stringContaining('slicing failed: no such schema') },
    ])
  })

  test('I2 E12 an entry whose readers vanish one after the other dies, and the one beside it is found', async () => {
    await using ivm = await openIvm()
    await using setUp = openRepository(ivm)
    await setUp.findPending(1)
    const deadly = await insert(ivm, setUp, product)
    const harmless = await insert(ivm, setUp, { ...product, version: 2 })
    const readers: Repository[] = []
    await using _ = {
      [Symbol.asyncDispose]: async () => void (await Promise.all(readers.map((reader) => reader.close()))),
    }
    const isDead = async (): Promise<boolean> => (await ivm.outbox.deadLetters.count()) === 1
    await comes('the deadly one is a dead letter', async () => {
      // Heard of no more when it has found something: like a process that ended with it.
      const reader = openRepository(ivm, { leaseMs: 100, maxAttempts: 2 })
      readers.push(reader)
      await comes('the reader finds something', async () => {
        const found = (await reader.findPending(100)).map(({ id }) => id)
        if (found.length === 1 && found[0] === harmless) await reader.markProcessed([harmless])
        return found.length > 0 || isDead()
      })
      return isDead()
    })
    expect(await ivm.outbox.deadLetters.list()).toMatchObject([{ eventId: deadly }])
    await using last = openRepository(ivm)
    await comes('the other is done', async () => {
      const found = await last.findPending(100)
      await last.markProcessed(found.map(({ id }) => id))
      return (await ivm.count('outbox_delivery', "status = 'DONE'")) === 1
    })
  })

  test('I2 one that is closed gave back what it held, and says so', async () => {
    await using ivm = await openIvm()
    const repository = openRepository(ivm)
    await repository.findPending(1)
    const id = await insert(ivm, repository, product)
    expect(await findSoon(repository)).toEqual([id])
    await repository.close()
    const closed = { code: 'INVALID_STATE', message: expect.stringContaining('is closed') }
    await expect(repository.findPending(1)).rejects.toMatchObject(closed)
    await expect(repository.markProcessed([id])).rejects.toMatchObject(closed)
    await using other = openRepository(ivm)
    expect(await findSoon(other)).toEqual([id])
  })

  test('I2 an insert that is rolled back is never found', async () => {
    await using ivm = await openIvm()
    await using repository = openRepository(ivm)
    await repository.findPending(1)
    const failing = ivm.outbox.inTransaction(ivm.pool, async (tx) => {
      await repository.insert(tx, {
        eventType: 'RawDataIngested',
        aggregateId: 'a:b',
        payload: payloadOf(product),
      })
      throw new Error('the application failed')
    })
    await expect(failing).rejects.toThrow('the application failed')
    expect(await repository.findPending(100)).toEqual([])
  })

  test('I2 a poller that vanished loses its entries to another, and can not mark them any more', async () => {
    await using ivm = await openIvm()
    await using slow = openRepository(ivm, { leaseMs: 100 })
    await using other = openRepository(ivm)
    await slow.findPending(1)
    const id = await insert(ivm, slow, product)
    expect(await slow.findPending(100)).toMatchObject([{ id }])
    await eventually('the other finds it', async () =>
      (await other.findPending(100)).some((entry) => entry.id === id),
    )
    expect(await rejection(slow.markProcessed([id]))).toBeInstanceOf(LeaseLostError)
    await other.markProcessed([id])
    expect((await ivm.delivery(id))?.status).toBe('DONE')
    // Neither holds it any more.
    for (const repository of [slow, other]) {
      const error = await rejection(repository.markFailed(id, 'again'))
      expect(error).toBeInstanceOf(NotFoundError)
      expect(error).toMatchObject({ code: 'NOT_FOUND', what: 'delivery', id })
    }
  })

  test('I2 closing gives back what was found and not marked', async () => {
    await using ivm = await openIvm()
    const first = openRepository(ivm)
    await first.findPending(1)
    const id = await insert(ivm, first, product)
    expect(await first.findPending(100)).toMatchObject([{ id, retryCount: 0 }])
    await first.close()
    await using second = openRepository(ivm)
    expect(await second.findPending(100)).toMatchObject([{ id, retryCount: 0 }])
  })
})
