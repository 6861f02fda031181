import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { DeliveryStatus, Settlement } from '../../src/delivery/delivery.ts'
import {
  brokenInvariant,
  canMove,
  canTransition,
  type DeliveryColumns,
  type DeliveryTransition,
  deliveryStateOf,
  TRANSITIONS,
  transitionOf,
} from '../../src/delivery/state.ts'

// Written out once more on purpose: a change of the machine must be made in two places by somebody who means it.
const EXPECTED: Record<DeliveryStatus, Record<DeliveryTransition, DeliveryStatus | null>> = {
  PENDING: {
    claim: 'PROCESSING',
    extend: null,
    complete: null,
    retry: null,
    release: null,
    park: null,
    unpark: 'PENDING',
    recover: null,
    die: null,
    redrive: null,
    discard: 'DEAD',
  },
  PROCESSING: {
    claim: null,
    extend: 'PROCESSING',
    complete: 'DONE',
    retry: 'PENDING',
    release: 'PENDING',
    park: 'PENDING',
    unpark: null,
    recover: 'PENDING',
    die: 'DEAD',
    redrive: null,
    discard: 'DEAD',
  },
  DONE: {
    claim: null,
    extend: null,
    complete: null,
    retry: null,
    release: null,
    park: null,
    unpark: null,
    recover: null,
    die: null,
    redrive: null,
    discard: null,
  },
  DEAD: {
    claim: null,
    extend: null,
    complete: null,
    retry: null,
    release: null,
    park: null,
    unpark: null,
    recover: null,
    die: null,
    redrive: 'PENDING',
    discard: null,
  },
}

const STATUSES = Object.keys(EXPECTED) as DeliveryStatus[]
const NAMES = Object.keys(EXPECTED.PENDING) as DeliveryTransition[]

describe('the transition table', () => {
  for (const status of STATUSES) {
    for (const transition of NAMES) {
      const to = EXPECTED[status][transition]
      test(`E6 ${status} ${to === null ? 'refuses' : `goes to ${to} by`} ${transition}`, () => {
        expect(TRANSITIONS[status][transition]).toBe(to)
        expect(canTransition(status, transition)).toBe(to !== null)
      })
    }
  }

  test('E6 DONE is never left', () => {
    for (const to of STATUSES) expect(canMove('DONE', to)).toBe(false)
  })

  test('E6 E12 DEAD is left to PENDING only, and by nothing but an operator', () => {
    expect(STATUSES.filter((to) => canMove('DEAD', to))).toEqual(['PENDING'])
    expect(NAMES.filter((name) => canTransition('DEAD', name))).toEqual(['redrive'])
  })

  test('E6 nothing is handled or dead without having been claimed, but by an operator who retires its subscription', () => {
    expect(canMove('PENDING', 'DONE')).toBe(false)
    expect(NAMES.filter((name) => TRANSITIONS.PENDING[name] === 'DEAD')).toEqual(['discard'])
  })

  test('the document holds the same table', () => {
    expect(documentedTable()).toEqual(EXPECTED)
  })
})

function documentedTable(): unknown {
  const text = readFileSync(new URL('../../docs/state-machine.md', import.meta.url), 'utf8')
  const rows = text
    .slice(text.search(/^\| +\| claim/m))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(0, 6)
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim()))
  const [head = [], , ...body] = rows
  return Object.fromEntries(
    body.map(([status, ...cells]) => [
      status,
      Object.fromEntries(cells.map((cell, index) => [head[index + 1], cell === '-' ? null : cell])),
    ]),
  )
}

describe('settlements', () => {
  const failure = { code: 'X', message: 'x' }
  const cases: readonly (readonly [Settlement, DeliveryStatus])[] = [
    [{ kind: 'done' }, 'DONE'],
    [{ kind: 'retry', delayMs: 1, failure }, 'PENDING'],
    [{ kind: 'release', delayMs: 0 }, 'PENDING'],
    [{ kind: 'park' }, 'PENDING'],
    [{ kind: 'dead', failure }, 'DEAD'],
  ]
  for (const [settlement, to] of cases) {
    test(`E6 a settlement "${settlement.kind}" leads from PROCESSING to ${to}, and is possible nowhere else`, () => {
      const transition = transitionOf(settlement)
      expect(TRANSITIONS.PROCESSING[transition]).toBe(to)
      for (const status of STATUSES.filter((name) => name !== 'PROCESSING')) {
        expect(canTransition(status, transition)).toBe(false)
      }
    })
  }
})

const AT = new Date('2026-01-01T00:00:00Z')
const FRESH: DeliveryColumns = {
  status: 'PENDING',
  held: false,
  suspect: false,
  attemptCount: 0,
  nextRetryAt: null,
  lockedBy: null,
  lockedUntil: null,
  leaseToken: null,
  processedAt: null,
  lastErrorCode: null,
  lastErrorMessage: null,
}
const LEASED = {
  status: 'PROCESSING',
  lockedBy: 'w',
  lockedUntil: AT,
  leaseToken: '7',
  attemptCount: 1,
} as const

describe('the state of a row', () => {
  test('has exactly the facts of its status', () => {
    expect(deliveryStateOf(FRESH)).toEqual({ status: 'PENDING', held: false, attemptCount: 0 })
    expect(
      deliveryStateOf({ ...FRESH, held: true, nextRetryAt: AT, attemptCount: 2, lastErrorCode: 'E' }),
    ).toEqual({
      status: 'PENDING',
      held: true,
      attemptCount: 2,
      nextRetryAt: AT,
      suspect: false,
      lastFailure: { code: 'E', message: '' },
    })
    expect(deliveryStateOf({ ...FRESH, held: true, nextRetryAt: 'parked' })).toMatchObject({
      nextRetryAt: 'parked',
      lastFailure: null,
    })
    expect(deliveryStateOf({ ...FRESH, ...LEASED })).toEqual({
      status: 'PROCESSING',
      attemptCount: 1,
      lease: { token: '7', workerId: 'w' },
      lockedUntil: AT,
      suspect: false,
    })
    expect(deliveryStateOf({ ...FRESH, status: 'DONE', processedAt: AT, attemptCount: 1 })).toEqual({
      status: 'DONE',
      attemptCount: 1,
      processedAt: AT,
    })
    expect(
      deliveryStateOf({ ...FRESH, status: 'DEAD', held: true, lastErrorCode: 'E', lastErrorMessage: 'm' }),
    ).toEqual({ status: 'DEAD', attemptCount: 0, failure: { code: 'E', message: 'm' }, blocksKey: true })
  })

  const impossible: readonly (readonly [string, Partial<DeliveryColumns>, string])[] = [
    ['PROCESSING without a lease', { status: 'PROCESSING' }, 'I2'],
    ['PROCESSING with half a lease', { ...LEASED, lockedUntil: null }, 'I2'],
    ['PENDING with a lease', { ...LEASED, status: 'PENDING' }, 'I2'],
    ['DONE without its time', { status: 'DONE' }, 'I3'],
    ['DEAD with a processed time', { status: 'DEAD', processedAt: AT, lastErrorCode: 'E' }, 'I3'],
    ['DEAD without a reason', { status: 'DEAD' }, 'I4'],
    ['held without a time', { held: true }, 'I5'],
    ['a time without being held', { nextRetryAt: AT }, 'I5'],
    ['PROCESSING and held', { ...LEASED, held: true }, 'I5'],
    ['DEAD that waits for a time', { status: 'DEAD', held: true, nextRetryAt: AT, lastErrorCode: 'E' }, 'I5'],
    ['DONE and suspect', { status: 'DONE', processedAt: AT, suspect: true }, 'I6'],
  ]
  for (const [name, columns, invariant] of impossible) {
    test(`${name} breaks ${invariant}`, () => {
      const row = { ...FRESH, ...columns }
      expect(brokenInvariant(row)).toContain(`${invariant}:`)
      expect(() => deliveryStateOf(row)).toThrow(invariant)
    })
  }
})
