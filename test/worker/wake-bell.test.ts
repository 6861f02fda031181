import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { WakeBell } from '../../src/worker/wake-bell.ts'
import { turn } from '../queue/fakes.ts'

function setup() {
  const clock = new ManualClock()
  const toldAtMs: number[] = []
  const bell = new WakeBell(async () => {
    toldAtMs.push(clock.monotonicMs())
  }, clock)
  return { clock, bell, toldAtMs }
}

describe('a bell that tells other processes', () => {
  test('tells of each of a few commits at once, however close together they come', async () => {
    const { clock, bell, toldAtMs } = setup()
    for (const pauseMs of [5, 1, 1, 8, 5]) {
      bell.ring()
      await turn()
      await clock.advance(pauseMs)
    }
    expect(toldAtMs).toEqual([0, 5, 6, 7, 15])
  })

  test.each([
    { perMs: 1, least: 300, most: 345 },
    { perMs: 10, least: 45, most: 60 },
  ])(
    'tells a few hundred times a second while commits never end, and fewer where they come thick: $perMs a millisecond',
    async ({ perMs, least, most }) => {
      const { clock, bell, toldAtMs } = setup()
      for (let ms = 0; ms < 1_000; ms += 1) {
        for (let commits = 0; commits < perMs; commits += 1) bell.ring()
        await clock.advance(1)
      }
      expect(toldAtMs.length).toBeLessThan(most)
      expect(toldAtMs.length).toBeGreaterThan(least)
    },
  )

  test('tells by the way at hand where it may do so at once, and by its own way otherwise', async () => {
    const { clock, bell, toldAtMs } = setup()
    let here = 0
    const notifyHere = async (): Promise<void> => {
      here += 1
    }
    bell.ring(notifyHere)
    expect(here).toBe(1)
    bell.ring(notifyHere) // the first is still on its way
    await turn()
    await clock.advance(1)
    expect(here).toBe(1)
    expect(toldAtMs).toEqual([0])
    bell.ring(notifyHere)
    expect(here).toBe(2)
  })

  test('goes on with its own way where the one at hand fails', async () => {
    const { bell, toldAtMs } = setup()
    bell.ring(() => Promise.reject(new Error('gone')))
    bell.ring()
    await turn()
    expect(toldAtMs).toEqual([0])
  })

  test('lets a few commits tell by themselves, then those of a pause not, and keeps its own pause after them', async () => {
    const { clock, bell, toldAtMs } = setup()
    const commit = (): boolean => {
      const tells = bell.mayTellNow()
      if (tells) bell.wakeHere()
      else bell.ring()
      return tells
    }
    expect([1, 2, 3, 4, 5, 6, 7].map(commit)).toEqual([true, true, true, true, true, true, false])
    await turn()
    expect(toldAtMs).toEqual([])
    await clock.advance(3)
    expect(toldAtMs).toEqual([3])
    expect(commit()).toBe(false)
    await clock.advance(1_000)
    expect(toldAtMs).toHaveLength(2)
    expect(commit()).toBe(true)
  })

  test('wakes its own process after a commit that told others by itself', () => {
    const { bell } = setup()
    let woken = 0
    bell.add({ wake: () => (woken += 1) })
    if (bell.mayTellNow()) bell.wakeHere()
    expect(woken).toBe(1)
  })

  test('lets no commit tell where nobody is to be told', () => {
    expect(new WakeBell(null, new ManualClock()).mayTellNow()).toBe(false)
  })

  test('tells of the last commit of many', async () => {
    const { clock, bell, toldAtMs } = setup()
    for (let ms = 0; ms < 100; ms += 1) {
      bell.ring()
      await clock.advance(1)
    }
    bell.ring()
    const before = toldAtMs.length
    await clock.advance(10)
    expect(toldAtMs.length).toBeGreaterThan(before)
  })
})
