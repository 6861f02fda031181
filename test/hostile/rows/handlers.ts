import { isDeepStrictEqual } from 'node:util'
import { type Around, deliver } from '../deliver.ts'
import { type Behaviour, borne, type Group, wrong } from '../row.ts'
import { circular, thenable } from '../things.ts'
import { blocked } from './blocked.ts'
import { backedOff, dead, done } from './handled.ts'

const misuse = (does: string, code: string, says: string, handler: (around: Around) => unknown): Behaviour =>
  borne(
    `a handler calls ${does}`,
    `dead letter ${code}: … ${says} …`,
    { status: 'DEAD', code, says: true },
    async () => {
      const { status, code: found, message } = await deliver({ handler })
      return { status, code: found, says: message?.includes(says) === true ? true : message }
    },
  )

const settling: readonly Behaviour[] = [
  dead(
    'a handler rejects with undefined',
    'HANDLER_ERROR',
    'The only attempt failed with: undefined was thrown',
    () => Promise.reject(),
  ),
  borne(
    'a handler never settles',
    'dead letter HANDLER_TIMEOUT after timeoutMs',
    ['DEAD', 'HANDLER_TIMEOUT'],
    async () => {
      const { status, code } = await deliver({
        handler: () => new Promise(() => undefined),
        options: { timeoutMs: 50 },
      })
      return [status, code]
    },
  ),
  done('a handler returns a thenable that calls back twice', 'the first call counts: DONE', () =>
    thenable((resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
      resolve(1)
      resolve(2)
      reject(new Error('too late'))
    }),
  ),
  dead(
    'a handler returns a thenable that rejects, then resolves',
    'HANDLER_ERROR',
    'The only attempt failed with: first',
    () =>
      thenable((resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
        reject(new Error('first'))
        resolve(1)
      }),
  ),
  dead(
    'a handler returns a thenable whose then throws',
    'HANDLER_ERROR',
    'The only attempt failed with: no then',
    () =>
      thenable(() => {
        throw new Error('no then')
      }),
  ),
  dead(
    'a handler returns an object whose then is a getter that throws',
    'HANDLER_ERROR',
    'The only attempt failed with: no getter',
    () =>
      Object.defineProperty({}, 'then', {
        get: () => {
          throw new Error('no getter')
        },
      }),
  ),
  done('a handler returns a cyclic object', 'what it returns is ignored: DONE', circular),
  borne(
    'a handler is an async generator function',
    'nothing in it runs, as nobody iterates: DONE',
    ['DONE', false],
    async () => {
      let ran = false
      const { status } = await deliver({
        handler: async function* hostile() {
          ran = true
          yield 1
        },
      })
      return [status, ran]
    },
  ),
  blocked,
  done('an observer throws at everything', 'ignored: DONE', () => undefined, {
    worker: {
      observers: [
        () => {
          throw new Error('no')
        },
      ],
    },
  }),
]

const judging: readonly Behaviour[] = [
  dead(
    'classify throws',
    'HANDLER_ERROR',
    'The only attempt failed with: x',
    () => {
      throw new Error('x')
    },
    {
      options: {
        classify: () => {
          throw new Error('judge is out')
        },
      },
    },
  ),
  dead(
    'classify returns a promise',
    'HANDLER_ERROR',
    'The only attempt failed with: x',
    () => {
      throw new Error('x')
    },
    {
      options: { classify: wrong(async () => 'dead') },
    },
  ),
  backedOff('a back-off that throws', () => {
    throw new Error('x')
  }),
  backedOff('a back-off that answers NaN', () => Number.NaN),
]

const misuses: readonly Behaviour[] = [
  misuse(
    'ctx.once(undefined, work)',
    'NOT_IN_TRANSACTION',
    'ctx.once was called without a transaction',
    ({ ctx }) =>
      ctx.once(
        wrong(undefined),
        wrong(async () => 1),
      ),
  ),
  misuse('ctx.once(pool)', 'INVALID_OPTIONS', 'the work must be a function', ({ ctx, pool }) =>
    ctx.once(pool, wrong(undefined)),
  ),
  misuse(
    'ctx.once(client without BEGIN, work)',
    'NOT_IN_TRANSACTION',
    'ctx.once was called outside a transaction',
    async ({ ctx, pool }) => {
      const client = await pool.connect()
      try {
        await ctx.once(
          { query: (text: string, params?: readonly unknown[]) => client.query(text, [...(params ?? [])]) },
          async () => 1,
        )
      } finally {
        client.release()
      }
    },
  ),
  misuse(
    'ctx.complete(pool)',
    'NOT_IN_TRANSACTION',
    'ctx.complete was called outside a transaction',
    ({ ctx, pool }) => ctx.complete(wrong(pool)),
  ),
  misuse('ctx.complete()', 'NOT_IN_TRANSACTION', 'ctx.complete was called without a transaction', ({ ctx }) =>
    ctx.complete(wrong(undefined)),
  ),
  misuse(
    "ctx.publish(tx, 'OrderPlaced')",
    'INVALID_EVENT',
    'input: must be an object with aggregateId and payload',
    ({ ctx, pool, outbox }) =>
      outbox.inTransaction(pool, (tx) => ctx.publish(tx, 'OrderPlaced', wrong(undefined))),
  ),
  misuse(
    "ctx.publish(tx, 'Nope', …)",
    'UNKNOWN_EVENT_TYPE',
    'is not in the catalogue',
    ({ ctx, pool, outbox }) =>
      outbox.inTransaction(pool, (tx) =>
        ctx.publish(tx, wrong('Nope'), wrong({ aggregateId: 1, payload: {} })),
      ),
  ),
  misuse(
    "ctx.publish(tx, …, { headers: 'x' })",
    'INVALID_EVENT',
    'headers: must be a plain object of texts',
    ({ ctx, pool, outbox }) =>
      outbox.inTransaction(pool, (tx) =>
        ctx.publish(tx, 'OrderPlaced', { aggregateId: 1, payload: {}, headers: wrong('x') }),
      ),
  ),
  borne(
    'a handler calls ctx.complete twice in one transaction',
    'the second call changes nothing: DONE',
    ['DONE', true],
    async () => {
      const seen: unknown[] = []
      const { status } = await deliver({
        handler: ({ ctx, pool, outbox }) =>
          outbox.inTransaction(pool, async (tx) => {
            for (const _call of ['first', 'second']) {
              await ctx.complete(tx)
              // The ctid is another one after an update that wrote the same.
              seen.push((await tx.query('select ctid, d.* from outbox_delivery d')).rows)
            }
          }),
      })
      return [status, isDeepStrictEqual(seen[0], seen[1])]
    },
  ),
]

export const handlers: Group = {
  title: 'Handlers',
  rows: [...settling, ...judging, ...misuses],
}
