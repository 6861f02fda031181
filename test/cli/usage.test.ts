import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { COMMANDS } from '../../src/cli/commands.ts'
import { commandHelp } from '../../src/cli/help.ts'
import { messagesIn } from '../../src/cli/messages/dictionaries.ts'
import { globalOptions } from '../../src/cli/options.ts'
import type { Style } from '../../src/cli/terminal.ts'
import { runCli } from './support.ts'

const commands = await Promise.all(COMMANDS.map((entry) => entry.load()))

test('every command is found by its own name', () => {
  expect(commands.map(({ name }) => name)).toEqual(COMMANDS.map(({ name }) => name))
})

test('a command loads its own code, and none of another or of a database that it does not open', async () => {
  const loaded = await filesLoadedBy(['version'])
  expect(loaded.filter((file) => file.includes('/cli/commands/'))).toEqual([
    expect.stringContaining('/cli/commands/version.js'),
  ])
  expect(loaded.filter((file) => /\/src\/(store\/postgres|worker|queue|testing)\//.test(file))).toEqual([])
})

test('an option of another command is told of, not taken for a word of its own', async () => {
  const { code, stderr } = await runCli(['status', '--operator', 'kim'])
  expect(code).toBe(2)
  expect(stderr).toContain('There is no option --operator')
  expect(stderr).not.toContain('kim')
})

test('help lists every command and every common option, on the standard output', async () => {
  const { code, stdout, stderr } = await runCli(['--help'])
  expect(code).toBe(0)
  expect(stderr).toBe('')
  for (const { name } of COMMANDS) expect(stdout).toContain(`  ${name}`)
  for (const name of Object.keys(globalOptions)) expect(stdout).toContain(`--${name}`)
})

test.each(['en', 'ko'] as const)('every command explains itself and its options (%s)', async (language) => {
  const parts = {
    terminal: { style: (_: Style, text: string) => text },
    language,
    messages: await messagesIn(language),
  }
  for (const command of commands) {
    const help = commandHelp(command, parts)
    expect(help).toContain(`commitpost ${command.name}`)
    expect(help).toContain(command.summary[language])
    for (const [name, { summary }] of Object.entries(command.options)) {
      expect(help).toContain(`--${name}`)
      expect(help).toContain(summary[language])
    }
  }
})

test.each([
  ['dlq', 'retry', '--help', '--lang', 'ko'],
  ['help', 'dlq', 'retry', '--lang', 'ko'],
  ['--lang', 'ko', '-h', 'dlq', 'retry', '--json'],
])('help can be asked for as %s %s %s %s', async (...args) => {
  const { code, stdout } = await runCli(args)
  expect(code).toBe(0)
  expect(stdout).toContain('사용법: commitpost dlq retry <id> [options]')
})

test('no option takes a value in one command and none in another', () => {
  const kinds = new Map<string, Set<boolean>>()
  for (const { options } of commands) {
    for (const [name, { placeholder }] of Object.entries(options)) {
      kinds.set(name, (kinds.get(name) ?? new Set()).add(placeholder === null))
      expect(Object.keys(globalOptions)).not.toContain(name)
    }
  }
  expect([...kinds].filter(([, kind]) => kind.size > 1)).toEqual([])
})

test('without a command the help goes to the standard error, and the program ends with 2', async () => {
  const { code, stdout, stderr } = await runCli([])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('dlq list')
})

test.each([
  { args: ['statsu'], says: 'Did you mean "commitpost status"?' },
  { args: ['dlq', 'lst'], says: 'Did you mean "commitpost dlq list"?' },
  { args: ['dlq'], says: 'needs a command: "dlq list", "dlq group", ' },
  { args: ['frobnicate'], says: 'There is no command "frobnicate".' },
  { args: ['status', '--jsno'], says: 'Did you mean --json?' },
  { args: ['status', '--schema'], says: '--schema needs a value: --schema NAME' },
  { args: ['status', '--schema', '--debug'], says: '--schema needs a value' },
  { args: ['status', '--json=yes'], says: '--json takes no value' },
  { args: ['status', 'now'], says: '"now" is one argument too many' },
  { args: ['status'], says: 'No database is named' },
  { args: ['status', '--lang', 'fr'], says: '--lang must be en or ko, not "fr"' },
  { args: ['migrate', 'sql', '--from', '-1'], says: '--from must be a whole number' },
  { args: ['demo', '--for', 'long'], says: '--for must be a length of time' },
  { args: ['demo', '--rate', '0/s'], says: '--rate must be a number per second' },
  { args: ['dlq', 'show', 'abc'], says: '<id> must be a number as the list shows it' },
])('$args is refused with 2 and says what is wrong', async ({ args, says }) => {
  const { code, stdout, stderr } = await runCli(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(says)
  expect(stderr).toMatch(/See: commitpost .*--help/)
})

test('all problems of a call are reported together', async () => {
  const { code, stderr } = await runCli(['dlq', 'retry', '--oprator', 'kim', '--note'])
  expect(code).toBe(2)
  expect(stderr).toContain('There is no option --oprator. Did you mean --operator?')
  expect(stderr).toContain('--note needs a value')
  expect(stderr).toContain('--operator is missing')
})

test('with --json a wrong call is one line of JSON', async () => {
  const { code, stdout, stderr } = await runCli(['statsu', '--json'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(JSON.parse(stderr)).toEqual({
    error: { code: 'USAGE', message: expect.stringContaining('Did you mean "commitpost status"?') },
  })
})

test.each([
  { env: { LANG: 'ko_KR.UTF-8' }, args: [], korean: true },
  { env: { LANG: 'en_US.UTF-8', LC_ALL: 'ko_KR.UTF-8' }, args: [], korean: true },
  { env: { LANG: 'ko_KR.UTF-8', LC_ALL: 'C' }, args: [], korean: false },
  { env: { LANG: 'ko_KR.UTF-8' }, args: ['--lang', 'en'], korean: false },
  { env: { LANG: 'en_US.UTF-8' }, args: ['--lang', 'ko'], korean: true },
])('the language follows $env and $args', async ({ env, args, korean }) => {
  const { stderr } = await runCli(['statsu', ...args], { env: env as unknown as Record<string, string> })
  expect(stderr).toContain(korean ? '"statsu" 명령은 없습니다.' : 'There is no command "statsu".')
})

test('NO_COLOR wins over FORCE_COLOR', async () => {
  const forced = await runCli(['--help'], { env: { FORCE_COLOR: '1' } })
  const plain = await runCli(['--help'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
  expect(forced.stdout).toContain('\u001b[1mUsage:\u001b[0m')
  expect(plain.stdout).not.toContain('\u001b')
})

test('version tells the version of the package, also as --version', async () => {
  const [one, other] = await Promise.all([runCli(['version', '--json']), runCli(['--version'])])
  expect(JSON.parse(one.stdout)).toEqual({ version: other.stdout.trim() })
  expect(other.stdout).toMatch(/^\d+\.\d+\.\d+/)
})

const LONG = 'x'.repeat(100_000)
test.each([
  ['--note must be at most 2000 characters long, but is 100000.', ['--operator', 'kim', '--note', LONG]],
  [
    '--operator must be at most 200 characters long, but is 201.',
    ['--operator', 'k'.repeat(201), '--note', 'x'],
  ],
  [
    '--operator 값은 200자를 넘을 수 없습니다.',
    ['--operator', 'k'.repeat(201), '--note', 'x', '--lang', 'ko'],
  ],
  ['--operator must be the name of a person: "policy:" stands', ['--operator', 'policy:week', '--note', 'x']],
  ['--note 값은 2000자를 넘을 수 없습니다.', ['--operator', 'kim', '--note', LONG, '--lang', 'ko']],
  ['--operator 값은 사람의 이름이어야', ['--operator', 'policy:week', '--note', 'x', '--lang', 'ko']],
])('an act that cannot be recorded is refused before any database is asked: %s', async (says, act) => {
  for (const command of [
    ['dlq', 'retry', '1'],
    ['dlq', 'resolve', '1'],
    ['pause', 'mailer'],
    ['dlq', 'show', '1', '--reveal'],
    ['export', 'verify', 'somewhere'],
    ['retain', 'run'],
  ]) {
    const { code, stderr } = await runCli([...command, ...act])
    expect({ command, code }).toEqual({ command, code: 2 })
    expect(stderr).toContain(says)
  }
})

/** The files of ours that a run of the program loaded, as the coverage that Node writes lists them. */
async function filesLoadedBy(args: readonly string[]): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-loaded-'))
  try {
    await runCli(args, { env: { NODE_V8_COVERAGE: directory } })
    const reports = await Promise.all(
      (await readdir(directory)).map((name) => readFile(join(directory, name), 'utf8')),
    )
    const scripts = reports.flatMap((text) => (JSON.parse(text) as { result: { url: string }[] }).result)
    return scripts.map(({ url }) => url).filter((url) => url.startsWith('file:'))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
