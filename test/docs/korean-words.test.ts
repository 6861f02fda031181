import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** All files below these that Korean stands in. */
const korean = ['src/cli', 'src/alert', 'docs', 'README.ko.md'].flatMap((entry) =>
  (entry.endsWith('.md') ? [entry] : pathsBelow(entry)).flatMap((path) => {
    const text = readFileSync(`${root}${path}`, 'utf8')
    return /\p{Script=Hangul}/u.test(text) ? [{ path, text }] : []
  }),
)

function pathsBelow(directory: string): readonly string[] {
  return readdirSync(`${root}${directory}`, { recursive: true, encoding: 'utf8' })
    .map((name) => `${directory}/${name.replaceAll('\\', '/')}`)
    .filter((path) => /\.(ts|md)$/.test(path))
}

test.each([
  { concept: 'monitor', word: '모니터', other: /감시자/ },
  { concept: 'pause', word: '일시 중지', other: /일시(정지|중지)/ },
  { concept: 'joining', word: '참여 중', other: /합류/ },
])('Korean has one word for $concept: $word', ({ concept, word, other }) => {
  const told = readFileSync(`${root}ARCHITECTURE.md`, 'utf8')
  expect(told).toMatch(new RegExp(`^\\| ${concept} .*\\| ${word} +\\|$`, 'm'))
  expect(korean.filter(({ text }) => other.test(text)).map(({ path }) => path)).toEqual([])
  expect(korean.some(({ text }) => text.includes(word))).toBe(true)
})
