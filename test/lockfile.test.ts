import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

interface Entry {
  readonly resolved?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const file = new URL('../package-lock.json', import.meta.url)
const { packages } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> }

describe('the lock file', () => {
  test('knows the variants for all platforms, so that npm ci works on each (see scripts/complete-lock.mjs)', () => {
    const missing = Object.entries(packages).flatMap(([path, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter(
        (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      ),
    )
    expect(missing).toEqual([])
  })

  test('names no registry, so that everyone installs from their own', () => {
    const hosts = Object.values(packages).flatMap(({ resolved }) =>
      resolved?.includes('://') ? [resolved] : [],
    )
    expect(hosts).toEqual([])
  })
})
