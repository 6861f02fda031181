import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SoloGate } from '../../src/runtime/gate.ts'

/** Follows a promise, so that a test can ask whether it is settled without waiting for it. */
function follow<Value>(promise: Promise<Value>): { value: Value | undefined } {
  const followed: { value: Value | undefined } = { value: undefined }
  void promise.then((value) => {
    followed.value = value
  })
  return followed
}

async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
}

describe('the solo gate', () => {
  test('many run together while nobody asks to be alone', () => {
    const gate = new SoloGate()
    expect([gate.tryEnter(), gate.tryEnter(), gate.tryEnter()]).toEqual([true, true, true])
  })

  test('a suspect waits for those inside, and newcomers wait behind it', async () => {
    const gate = new SoloGate()
    gate.tryEnter()
    const solo = follow(gate.exclusive())
    const newcomer = follow(gate.enter())
    await settleDown()
    expect([solo.value, newcomer.value, gate.tryEnter()]).toEqual([undefined, undefined, false])
    gate.leave()
    expect(gate.tryEnter()).toBe(false)
    await settleDown()
    expect([typeof solo.value, newcomer.value]).toEqual(['function', undefined])
    solo.value?.()
    await settleDown()
    expect(newcomer.value).toBe(true)
    expect(gate.tryEnter()).toBe(true)
  })

  test('two suspects never run together, and those between them get their turn', async () => {
    const gate = new SoloGate()
    const first = await gate.exclusive()
    const second = follow(gate.exclusive())
    const between = follow(gate.enter())
    first?.()
    await settleDown()
    expect([between.value, second.value]).toEqual([true, undefined])
    gate.leave()
    await settleDown()
    expect(typeof second.value).toBe('function')
  })

  test('a suspect that gives up waiting lets the others on', async () => {
    const gate = new SoloGate()
    gate.tryEnter()
    const controller = new AbortController()
    const solo = follow(gate.exclusive(controller.signal))
    const newcomer = follow(gate.enter())
    controller.abort()
    await settleDown()
    expect([solo.value, newcomer.value]).toEqual([null, true])
    expect(await gate.exclusive(controller.signal)).toBeNull()
  })

  test('a newcomer that gives up waiting stays outside', async () => {
    const gate = new SoloGate()
    const out = await gate.exclusive()
    const controller = new AbortController()
    const newcomer = follow(gate.enter(controller.signal))
    controller.abort()
    await settleDown()
    expect(newcomer.value).toBe(false)
    expect(await gate.enter(controller.signal)).toBe(false)
    out?.()
    out?.()
    expect(typeof (await gate.exclusive())).toBe('function')
  })

  test('leaving twice is a bug and says so', () => {
    expect(() => new SoloGate().leave()).toThrow('leave() without enter()')
  })

  test('whatever the interleaving: alone means alone, and nobody waits for ever', async () => {
    const steps = fc.array(fc.constantFrom('enter', 'leave', 'solo', 'end-solo', 'give-up'), {
      maxLength: 40,
    })
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const model = new GateModel()
        for (const step of sequence) await model.take(step)
        await model.drain()
      }),
      { numRuns: 500 },
    )
  })
})

/** Plays handlers and suspects against a real gate and checks it after every step. */
class GateModel {
  readonly gate = new SoloGate()
  inside = 0
  waiting = 0
  outs: (() => void)[] = []
  readonly controllers: AbortController[] = []

  async take(step: string): Promise<void> {
    if (step === 'enter') this.enter()
    if (step === 'solo') this.solo()
    if (step === 'leave' && this.inside > 0) this.leave()
    if (step === 'end-solo') this.outs.pop()?.()
    if (step === 'give-up') this.controllers.shift()?.abort()
    await settleDown()
    this.check()
  }

  enter(): void {
    if (this.gate.tryEnter()) {
      this.inside += 1
      return
    }
    this.waiting += 1
    void this.gate.enter(this.newSignal()).then((entered) => {
      this.waiting -= 1
      if (entered) this.inside += 1
    })
  }

  solo(): void {
    this.waiting += 1
    void this.gate.exclusive(this.newSignal()).then((out) => {
      this.waiting -= 1
      if (out !== null) this.outs.push(out)
    })
  }

  leave(): void {
    this.inside -= 1
    this.gate.leave()
  }

  newSignal(): AbortSignal {
    const controller = new AbortController()
    this.controllers.push(controller)
    return controller.signal
  }

  check(): void {
    expect(this.outs.length).toBeLessThanOrEqual(1)
    if (this.outs.length === 1) expect(this.inside).toBe(0)
    // Somebody is always inside while anybody waits: the gate never forgets a waiter.
    if (this.waiting > 0) expect(this.inside + this.outs.length).toBeGreaterThan(0)
  }

  async drain(): Promise<void> {
    for (let turn = 0; turn < 200 && this.inside + this.outs.length + this.waiting > 0; turn += 1) {
      await this.take(this.outs.length > 0 ? 'end-solo' : 'leave')
    }
    expect([this.inside, this.outs.length, this.waiting]).toEqual([0, 0, 0])
    expect(this.gate.tryEnter()).toBe(true)
  }
}
