import { describe, expect, test } from 'vitest'
import { withoutPassword } from '../../src/cli/text/redact.ts'
import { safeBlock, safeJson, safeLine } from '../../src/cli/text/safe.ts'
import { renderTable } from '../../src/cli/text/table.ts'
import { formatsIn } from '../../src/runtime/formats.ts'
import { redact } from '../../src/runtime/redact.ts'
import { editsBetween, suggest } from '../../src/runtime/suggest.ts'
import { displayWidth, pad, truncate } from '../../src/runtime/width.ts'

describe('the width of text', () => {
  test.each([
    ['', 0],
    ['orders', 6],
    ['구독', 4],
    ['구독 ledger', 11],
    ['한글'.normalize('NFD'), 4],
    ['é'.normalize('NFD'), 1],
    ['가장 오래된 대기', 16],
    ['日本語テキスト', 14],
    ['ＡＢ', 4],
    ['🚚', 2],
    ['👩‍👩‍👧', 2],
    ['🇰🇷', 2],
    ['a\u200bb', 2],
    ['✓', 1],
  ])('of %j is %i columns', (text, width) => {
    expect(displayWidth(text)).toBe(width)
  })

  test('is what padding goes by', () => {
    expect(pad('구독', 6)).toBe('구독  ')
    expect(pad('12', 4, 'right')).toBe('  12')
  })

  test('is what cutting goes by: no syllable is cut in two', () => {
    expect(truncate('데드 레터', 9)).toBe('데드 레터')
    expect(truncate('데드 레터', 8)).toBe('데드 레…')
    expect(truncate('데드 레터', 7)).toBe('데드 …')
    expect(displayWidth(truncate('데드 레터', 7))).toBeLessThanOrEqual(7)
  })
})

describe('a table', () => {
  const plain = { width: null, title: (text: string) => text }

  test('lines up Korean and Latin cells', () => {
    const lines = renderTable(
      [{ title: '구독' }, { title: '대기 중', align: 'right' }],
      [
        ['notifications', '3'],
        ['원장', '12,345'],
      ],
      plain,
    )
    expect(lines).toEqual(['구독           대기 중', 'notifications        3', '원장            12,345'])
  })

  test('gives way in its elastic column when the terminal is narrow', () => {
    const columns = [{ title: 'ID' }, { title: 'ERROR', elastic: true }]
    const lines = renderTable(columns, [['1', '결제가 거절되었습니다, 카드를 확인하십시오']], {
      ...plain,
      width: 24,
    })
    expect(lines).toEqual(['ID  ERROR', '1   결제가 거절되었습니…'])
    expect(lines.every((line) => displayWidth(line) <= 24)).toBe(true)
  })
})

describe('text of unknown origin', () => {
  test('cannot drive the terminal', () => {
    const hostile = 'a\u001b[2J\u001b]0;title\u0007b\u009b31mc\u0000\u007f\u202ed\r\ne\tf'
    expect(safeLine(hostile)).toBe('abcd e f')
    expect(safeBlock(hostile)).toBe('abcd\ne  f')
  })

  test('keeps its Korean', () => {
    expect(safeLine('주문이 접수되었습니다')).toBe('주문이 접수되었습니다')
  })

  test('loses nothing as JSON, and still has no control in it', () => {
    const value = { text: '\u001b[31m\u009b\u007f\u2028한글' }
    expect(safeJson(value)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/)
    expect(JSON.parse(safeJson(value))).toEqual(value)
  })
})

describe('passwords', () => {
  test.each([
    ['postgres://app:s3cret@db:5432/x', 'postgres://app:***@db:5432/x'],
    ['postgres://app:p@ss/w:rd@db/x', 'postgres://app:***@db/x'],
    ['host=db password=s3cret user=app', 'host=db password=*** user=app'],
    [
      'postgres://db/x?user=a&password=s3cret&sslmode=require',
      'postgres://db/x?user=a&password=***&sslmode=require',
    ],
    ['postgres://app@db/x', 'postgres://app@db/x'],
  ])('of %s are not shown', (text, shown) => {
    expect(redact(`cannot connect to ${text} now`)).toBe(`cannot connect to ${shown} now`)
  })

  test('are left out of an address that is to be used again', () => {
    expect(withoutPassword('postgres://app:s3cret@db:5432/x?password=s3cret&a=b')).toBe(
      'postgres://app@db:5432/x?a=b',
    )
    expect(withoutPassword('socket:/tmp?db=x&password=s3cret')).not.toContain('s3cret')
  })
})

describe('suggestions', () => {
  const commands = [
    'status',
    'dlq list',
    'dlq show',
    'dlq',
    'migrate up',
    'migrate',
    'pause',
    'resume',
    'demo',
  ]

  test.each([
    ['statsu', 'status'],
    ['stat', 'status'],
    ['migarte', 'migrate'],
    ['dql', 'dlq'],
    ['puase', 'pause'],
    ['DEMO', 'demo'],
    ['frobnicate', null],
    ['x', null],
  ])('for %s: %s', (given, wanted) => {
    expect(suggest(given, commands)).toBe(wanted)
  })

  test('count a swap of neighbours as one edit', () => {
    expect(editsBetween('statsu', 'status')).toBe(1)
    expect(editsBetween('', 'abc')).toBe(3)
  })
})

describe('numbers and times', () => {
  test.each([
    ['en' as const, 0, '0 sec'],
    ['en' as const, 59.9, '59 sec'],
    ['en' as const, 3_900, '1 hr 5 min'],
    ['en' as const, 90_000, '1 day 1 hr'],
    ['ko' as const, 3_900, '1시간 5분'],
    ['ko' as const, 86_400, '1일'],
  ])('in %s, %d seconds are %s', (language, seconds, shown) => {
    expect(formatsIn(language).age(seconds)).toBe(shown)
  })

  test('are written as the language has it', () => {
    expect(formatsIn('en').count(1_234_567)).toBe('1,234,567')
    expect(formatsIn('ko').count(1_234_567)).toBe('1,234,567')
    expect(formatsIn('en').latency(1.26)).toBe('1.3 ms')
    expect(formatsIn('en').latency(1_300)).toBe('1.3 sec')
  })
})
