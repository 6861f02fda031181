import { expect, test, vi } from 'vitest'
import { linkSignals, onAbort, withDeadline } from '../../src/runtime/abort.ts'
import { DeadlineExceededError } from '../../src/runtime/errors.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'

const never = (): Promise<never> => new Promise(() => {})

test('a linked signal aborts with the first source and its reason', () => {
  const [a, b] = [new AbortController(), new AbortController()]
  const linked = linkSignals(a.signal, undefined, b.signal)
  b.abort('b first')
  a.abort('a later')
  expect(linked.signal.reason).toBe('b first')
  expect(linkSignals(a.signal).signal.aborted).toBe(true)
})

test('unlinking leaves nothing on a long-lived source', () => {
  const source = new AbortController()
  const removed = vi.spyOn(source.signal, 'removeEventListener')
  const linked = linkSignals(source.signal)
  linked.unlink()
  source.abort()
  expect(linked.signal.aborted).toBe(false)
  expect(removed).toHaveBeenCalledTimes(1)
  linked.abort('own')
  expect(linked.signal.reason).toBe('own')
})

test('onAbort calls back once, at once if it is late, and never after it was stopped', () => {
  const controller = new AbortController()
  const seen: unknown[] = []
  onAbort(controller.signal, (reason) => seen.push(['early', reason]))
  onAbort(controller.signal, () => seen.push('stopped'))()
  onAbort(undefined, () => seen.push('nobody'))()
  controller.abort('why')
  onAbort(controller.signal, (reason) => seen.push(['late', reason]))()
  expect(seen).toEqual([
    ['early', 'why'],
    ['late', 'why'],
  ])
})

test('what answers in time gives its answer and leaves no timer', async () => {
  const clock = new ManualClock()
  const answer = await withDeadline({ clock, timeoutMs: 100, what: 'x' }, () => Promise.resolve(42))
  expect(answer).toBe(42)
  expect(clock.sleeping).toBe(0)
})

test('what never answers ends at its deadline, and its signal aborts', async () => {
  const clock = new ManualClock()
  let given: AbortSignal | undefined
  const waiting = withDeadline({ clock, timeoutMs: 100, what: 'the claim statement' }, (signal) => {
    given = signal
    return never()
  })
  const outcome = expect(waiting).rejects.toThrow(DeadlineExceededError)
  await clock.advance(100)
  await outcome
  await expect(waiting).rejects.toThrow('the claim statement gave no answer within 100 ms')
  expect(given?.aborted).toBe(true)
})

test('the caller can end the wait with a reason of its own', async () => {
  const clock = new ManualClock()
  const stop = new AbortController()
  const deadline = { clock, timeoutMs: 100, what: 'x', signal: stop.signal }
  const waiting = withDeadline(deadline, never)
  const outcome = expect(waiting).rejects.toThrow('stopping')
  stop.abort(new Error('stopping'))
  await outcome
  const run = vi.fn(never)
  await expect(withDeadline(deadline, run)).rejects.toThrow('stopping')
  expect(run).not.toHaveBeenCalled()
})

test('a failure passes through, a synchronous one too', async () => {
  const clock = new ManualClock()
  const deadline = { clock, timeoutMs: 100, what: 'x' }
  await expect(withDeadline(deadline, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await expect(
    withDeadline(deadline, () => {
      throw new Error('at once')
    }),
  ).rejects.toThrow('at once')
  expect(clock.sleeping).toBe(0)
})
