import { expect, test } from 'vitest'
import { streamPatterns } from '../../../src/store/postgres/stream-patterns.ts'
import { streamScope } from '../../../src/store/postgres/stream-scope.ts'
import type { LoggedEvent } from '../../../src/store/stream-store.ts'

/** Whether a log stream that takes these streams wants an event of that one. */
function wants(streams: readonly string[], stream: string): boolean {
  const streamLike = streamPatterns(streams)
  const rows = [{ streamLike, eventTypes: null, startFrom: 'beginning', startAt: null, began: null }]
  return streamScope(JSON.stringify(rows)).wants({ stream, type: 'OrderPlaced' } as LoggedEvent)
}

const PRINTABLE = Array.from({ length: 95 }, (_, n) => String.fromCharCode(32 + n)).filter(
  (sign) => sign !== '*',
)

test.each([...PRINTABLE, '한', '🚚'])(
  'a stream with %s in its name is wanted by that name, and no other is',
  (sign) => {
    const name = `shop${sign}order`
    expect(wants([name], name)).toBe(true)
    expect(wants([name], 'shop~~order')).toBe(false)
    expect(wants([`${name}.*`], `${name}.placed`)).toBe(true)
  },
)

test('a star stands for anything, of any length', () => {
  expect(wants(['my-shop.*'], 'my-shop.order')).toBe(true)
  expect(wants(['my-shop.*'], 'my-shop.')).toBe(true)
  expect(wants(['my-shop.*'], 'my_shop.order')).toBe(false)
})
