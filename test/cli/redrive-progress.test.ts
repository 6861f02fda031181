import { expect, test } from 'vitest'
import { messagesIn } from '../../src/cli/messages/dictionaries.ts'
import { progressPrinter } from '../../src/cli/redrive-progress.ts'
import { createTerminal } from '../../src/cli/terminal.ts'
import { formatsIn } from '../../src/runtime/formats.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { RedriveProgress } from '../../src/store/redrive-store.ts'

const EVENT = '01a1e1c7-5e93-776f-936a-babd9723946b'

const waiting: RedriveProgress = {
  id: '1',
  state: 'applying',
  letters: 2,
  waiting: 0,
  driven: 2,
  onTheirWay: 2,
  oneOnItsWay: { subscription: 'mailer', eventId: EVENT },
  succeeded: 0,
  failedAgain: 0,
  blocked: 0,
  skipped: { resolved: 0, gone: 0, retired: 0, behind: 0 },
  appliedBy: 'kim',
  expiresAt: new Date('2026-11-17T00:00:00Z'),
}

test.each([
  ['en', `Nothing has changed for 10 sec: it waits for "mailer". What for, says: commitpost why ${EVENT}\n`],
  ['ko', `"mailer" 구독의 전달을 기다리고 있습니다. 이유를 보려면: commitpost why ${EVENT}\n`],
] as const)(
  'a re-drive that stands still says once for whom it waits, and how to see why: %s',
  async (language, said) => {
    const out: string[] = []
    const err: string[] = []
    const terminal = createTerminal({
      stdout: { write: (text) => out.push(text) },
      stderr: { write: (text) => err.push(text) },
      env: {},
    })
    const clock = new ManualClock()
    const messages = await messagesIn(language)
    const print = progressPrinter({ terminal, messages, formats: formatsIn(language) }, clock)
    const after = async (ms: number, progress: RedriveProgress): Promise<void> => {
      await clock.advance(ms)
      print(progress)
    }
    await after(0, waiting)
    await after(9_999, waiting)
    expect(err).toEqual([])
    await after(1, waiting)
    await after(60_000, waiting)
    expect(err).toEqual([expect.stringContaining(said)])
    const further = { ...waiting, onTheirWay: 1, succeeded: 1 }
    await after(1, further)
    await after(9_000, further)
    expect(err).toHaveLength(1)
    await after(1_000, further)
    expect(err).toHaveLength(2)
    const done: RedriveProgress = { ...further, onTheirWay: 0, succeeded: 2, oneOnItsWay: null }
    await after(1, done)
    await after(60_000, done)
    expect({ lines: out.length, notes: err.length }).toEqual({ lines: 3, notes: 2 })
  },
)
