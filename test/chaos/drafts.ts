import { randomUUID } from 'node:crypto'
import type { InTransactionOptions } from '../../src/index.ts'
import type { Random } from '../../src/runtime/random.ts'
import { identityOf, keyOf, type Load, type LoadName, ORIGIN } from './catalogue.ts'
import type { Identity } from './checker/entry.ts'

/** An event that is to be published. */
export interface Draft {
  readonly eventId: string
  readonly stream: string
  readonly type: LoadName
  readonly aggregateId: string
  readonly isNumbered: boolean
  readonly payload: Load
  readonly headers: { readonly [ORIGIN]: string }
}

/** One transaction of a publisher. */
export interface Operation {
  readonly transaction: string
  /** Through the library, by plain SQL, by one statement without a transaction, or to be rolled back. */
  readonly style: 'library' | 'sql' | 'autocommit' | 'rollback'
  readonly isolation: NonNullable<InTransactionOptions['isolation']> | null
  /** How long it stays open before its end. */
  readonly waitMs: number
  /** Whether it is tried again where its outcome is not known. */
  readonly insists: boolean
  readonly drafts: readonly Draft[]
}

/** Keys that all publishers share. */
const SHARED_KEYS = 24
const TEXTS = ['plain', 'ünïcödé', '서울 🚚', 'a "quoted" \\ text', 'line\nbreak', '']
const NAMES = ['Stepped', 'Rested', 'Turned'] as const

/** Draws the n-th operation of a publisher. The same chance gives the same one, but for the ids. */
export function draw(random: Random, publisher: string, n: number): Operation {
  const style = chosen(random, ['library', 'library', 'library', 'sql', 'autocommit', 'rollback'] as const)
  const isolation = chosen(random, [null, null, 'repeatable read', 'serializable'] as const)
  const isLong = random() < 0.06 && style !== 'autocommit'
  const waitMs = isLong ? 500 + random() * 3_000 : 0
  const size = style === 'autocommit' ? 1 : 1 + Math.floor(random() * 3)
  // A long transaction keeps its keys to itself: others would wait for it.
  const ownKey = isLong ? `long-${publisher}` : `own-${publisher}`
  const drafts = Array.from({ length: size }, (_, index) => {
    const isShared = !isLong && random() < 0.7
    const key = isShared ? `shared-${Math.floor(random() * SHARED_KEYS)}` : ownKey
    const type = isShared ? chosen(random, NAMES) : 'Waved'
    return draft(random, type, key, publisher, n * 10 + index)
  })
  return { transaction: `${publisher}-${n}`, style, isolation, waitMs, insists: random() < 0.5, drafts }
}

function draft(random: Random, type: LoadName, aggregateId: string, origin: string, n: number): Draft {
  const parts = [
    { name: chosen(random, TEXTS), amount: Math.round(random() * 1e9) / 100 },
    { name: 'total', amount: n },
  ]
  return {
    eventId: randomUUID(),
    stream: type === 'Waved' ? 'chaos.wave' : 'chaos.walk',
    type,
    aggregateId,
    isNumbered: type !== 'Waved',
    payload: { n, text: chosen(random, TEXTS), parts },
    headers: { [ORIGIN]: origin },
  }
}

function chosen<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item
}

/** What handlers have to see of these. */
export function identitiesOf(drafts: readonly Draft[]): readonly Identity[] {
  return drafts.map(({ eventId, type, aggregateId, payload, headers }) =>
    identityOf(eventId, type, keyOf(aggregateId), payload, headers[ORIGIN]),
  )
}
