import { expect, test } from 'vitest'
import { createTerminal, type Terminal } from '../../src/cli/terminal.ts'

interface Recorded {
  readonly terminal: Terminal
  readonly out: string[]
  readonly err: string[]
}

function record(isTTY: boolean, env: Record<string, string> = {}, errIsTTY = isTTY, columns = 20): Recorded {
  const out: string[] = []
  const err: string[] = []
  const terminal = createTerminal({
    stdout: { isTTY, columns, write: (text) => out.push(text) },
    stderr: { isTTY: errIsTTY, columns: 20, write: (text) => err.push(text) },
    env,
  })
  return { terminal, out, err }
}

test('the live line takes the place of the one before it, and never breaks into two', () => {
  const { terminal, out } = record(true)
  terminal.printLive('one')
  terminal.printLive('발행 100 전달 200 재시도 예정 3')
  terminal.endLive()
  terminal.endLive()
  expect(out).toEqual(['\r\u001b[2Kone', '\r\u001b[2K발행 100 전달 200 …', '\n'])
})

test('a terminal that does not know its size is taken for an ordinary one', () => {
  const { terminal, out } = record(true, {}, true, 0)
  terminal.printLive('published 100  delivered 300')
  expect(out).toEqual(['\r\u001b[2Kpublished 100  delivered 300'])
  expect(terminal.table.width).toBeNull()
})

test('without a terminal each live line is a line of its own', () => {
  const { terminal, out } = record(false)
  terminal.printLive('one')
  terminal.printLive('two')
  terminal.endLive()
  expect(out).toEqual(['one\n', 'two\n'])
})

test.each([
  { isTTY: true, env: {}, coloured: true },
  { isTTY: false, env: {}, coloured: false },
  { isTTY: true, env: { NO_COLOR: '1' }, coloured: false },
  { isTTY: true, env: { NO_COLOR: '' }, coloured: true },
  { isTTY: false, env: { FORCE_COLOR: '1' }, coloured: true },
  { isTTY: true, env: { FORCE_COLOR: '0' }, coloured: false },
  { isTTY: true, env: { FORCE_COLOR: '1', NO_COLOR: '1' }, coloured: false },
  { isTTY: true, env: { TERM: 'dumb' }, coloured: false },
])('colours with %o', ({ isTTY, env, coloured }) => {
  const { terminal } = record(isTTY, env)
  expect(terminal.style('good', 'fine')).toBe(coloured ? '\u001b[32mfine\u001b[0m' : 'fine')
})

test('remarks that go to a file have no colours, although the terminal has', () => {
  const { terminal, err } = record(true, {}, false)
  terminal.note(terminal.style('bad', 'no'))
  expect(err).toEqual(['no\n'])
})
