import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ensureJars, kafkaAvailable } from '../support/kafka/jars.ts'

/** Stands in for Maven: what the script does is said by the test; $STACK is the directory to fill. */
const HEADER = `#!/bin/sh
echo called >> "$CALLS"
for argument; do case $argument in -Dstack=*) STACK=\${argument#-Dstack=} ;; esac; done
mkdir -p "$STACK/libs"
`

describe.skipIf(!kafkaAvailable() || process.platform === 'win32')('the cache of jars', () => {
  let home = ''
  let calls = ''

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'commitpost-jars-test-'))
    calls = join(home, 'calls')
    vi.stubEnv('XDG_CACHE_HOME', home)
    vi.stubEnv('CALLS', calls)
    vi.stubEnv('PATH', `${home}:${process.env['PATH']}`)
  })

  afterEach(async () => {
    vi.unstubAllEnvs()
    await rm(home, { recursive: true, force: true })
  })

  const maven = async (script: string): Promise<void> => {
    await writeFile(join(home, 'mvn'), `${HEADER}${script}\n`)
    await chmod(join(home, 'mvn'), 0o755)
  }
  const called = async (): Promise<number> => (await readFile(calls, 'utf8')).trim().split('\n').length
  const cached = (): Promise<readonly string[]> => readdir(join(home, 'commitpost'))

  test('what was fetched by half is never taken for whole, and is fetched again', async () => {
    await maven('echo "[ERROR] no route to host"; exit 1')
    await expect(ensureJars()).rejects.toThrow('no route to host')
    expect(await cached()).toEqual([])
    await maven('mkdir "$STACK/plugins"')
    const { libs } = await ensureJars()
    expect(await readdir(libs)).toEqual([])
    expect(await called()).toBe(2)
  })

  test('several that need it at once fetch it once', async () => {
    await maven('sleep 1')
    const all = await Promise.all([ensureJars(), ensureJars(), ensureJars()])
    expect(new Set(all.map(({ libs }) => libs)).size).toBe(1)
    expect(await called()).toBe(1)
    expect(await cached()).toEqual([expect.stringMatching(/^infra-[0-9a-f]{16}$/)])
  })

  test('what a process left behind that died while it fetched is cleared away', async () => {
    await maven('')
    const { libs } = await ensureJars()
    const name = /infra-[0-9a-f]{16}/.exec(libs)?.[0] ?? ''
    const store = join(home, 'commitpost')
    await rm(join(store, name), { recursive: true })
    const { pid } = spawnSync('true')
    await mkdir(join(store, `${name}.partial-${pid}`))
    await writeFile(join(store, `${name}.lock`), String(pid))
    await ensureJars()
    expect(await cached()).toEqual([name])
  })
})
