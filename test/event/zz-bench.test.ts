import { test } from 'vitest'
import { tryEncodePayload } from '../../src/event/encode-payload.ts'
test('bench', () => {
  const order = { orderId: 'o-123', customer: { id: 'c-1', name: '홍길동', tags: ['a','b'] }, items: Array.from({length: 10}, (_, i) => ({ sku: `sku-${i}`, qty: i, price: i * 100, note: 'some longer text here for size' })), at: '2026-01-01T00:00:00Z' }
  for (const [name, f] of [['ours', () => tryEncodePayload(order, 1e6)], ['native', () => JSON.stringify(order)]] as const) {
    for (let i = 0; i < 20000; i++) f()
    const t = performance.now(); for (let i = 0; i < 50000; i++) f()
    console.log(name, ((performance.now() - t) / 50).toFixed(2), 'us/op', JSON.stringify(order).length)
  }
  let value: unknown = ['x']
  for (let level = 0; level < 150; level += 1) value = [value, value]
  const t = performance.now(); tryEncodePayload(value, 1048576); console.log('bomb', performance.now() - t)
})
