import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { claimVariants } from './claim-variants.ts'
import { handlerVariants } from './handler-variants.ts'
import { leaseVariants } from './lease-variants.ts'
import { orderVariants } from './order-variants.ts'
import { publishVariants } from './publish-variants.ts'
import { shutdownVariants } from './shutdown-variants.ts'
import { Trial } from './trial.ts'
import type { Variant } from './variant.ts'
import { widenVariants } from './widen-variants.ts'

const variants: readonly Variant[] = [
  ...publishVariants,
  ...claimVariants,
  ...leaseVariants,
  ...shutdownVariants,
  ...orderVariants,
  ...widenVariants,
  ...handlerVariants,
]

async function verdictOf(variant: Variant, broken: boolean): Promise<readonly string[]> {
  await using trial = await Trial.open(variant, broken)
  await variant.play(trial)
  return await trial.verdict()
}

for (const variant of variants) {
  describe(variant.name, () => {
    test('as the library is, the checker finds nothing', async () => {
      expect(await verdictOf(variant, false)).toEqual([])
    })

    test(`broken, it is caught: ${variant.caught.join(', ')}`, async () => {
      expect(await verdictOf(variant, true)).toEqual(variant.caught)
    })
  })
}

test('the list for readers names every variant and what it is caught as', async () => {
  const readme = await readFile(new URL('README.md', import.meta.url), 'utf8')
  const listed = [...readme.matchAll(/^\| (?!variant)([a-z].*?) +\| (`.*?) +\|$/gim)].map(
    ([, name, caught]) => ({
      name,
      caught,
    }),
  )
  expect(listed).toEqual(
    variants.map(({ name, caught }) => ({ name, caught: caught.map((each) => `\`${each}\``).join(', ') })),
  )
})
