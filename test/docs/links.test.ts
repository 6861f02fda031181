import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const { files } = JSON.parse(read('package.json')) as { readonly files: readonly string[] }

/** The files below one entry of `files`, the built ones left out: they may not be there yet, and are no documents. */
function filesOf(entry: string): readonly string[] {
  if (entry === 'dist') return []
  if (statSync(join(root, entry)).isFile()) return [entry]
  const names = readdirSync(join(root, entry), { recursive: true, encoding: 'utf8' })
  return names.map((name) => posix.join(entry, name.replaceAll('\\', '/')))
}

const packaged = files.flatMap(filesOf)
const documents = packaged.filter((path) => path.endsWith('.md'))

/** The anchors that GitHub and npm give the headings of a document. */
function anchorsOf(path: string): readonly string[] {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, text]) => text as string)
  return headings.map((text) =>
    text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function problemOf(from: string, link: string): string | null {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? from : posix.join(posix.dirname(from), path)
  if (!packaged.includes(target)) return `${from}: ${link} leads to a file that is not in the package`
  const isThere = anchor === undefined || anchorsOf(target).includes(decodeURIComponent(anchor))
  return isThere ? null : `${from}: ${link} leads to a heading that is not there`
}

test.each(['README.md', 'README.ko.md'])(
  '%s leads to every page, in its own language where there is one',
  (path) => {
    const isKorean = path.endsWith('.ko.md')
    const pages = documents.filter((page) => page.startsWith('docs/') && !page.endsWith('.ko.md'))
    const translated = (page: string): string => page.replace(/\.md$/, '.ko.md')
    const expected = pages.map((page) =>
      isKorean && documents.includes(translated(page)) ? translated(page) : page,
    )
    const linked = new Set([...read(path).matchAll(/\]\((docs\/[\w.-]+)/g)].map(([, page]) => page))
    expect(expected.filter((page) => !linked.has(page))).toEqual([])
  },
)

test('the Korean README says of each page that is in English only that it is', () => {
  const links = [...read('README.ko.md').matchAll(/\]\(([\w./-]+\.md)[^)]*\)(\(영문\))?/g)]
  const isEnglish = (page: string): boolean => page !== 'README.md' && !page.endsWith('.ko.md')
  expect(links.filter(([, page = '', mark]) => isEnglish(page) !== (mark !== undefined))).toEqual([])
  expect(links.length).toBeGreaterThan(10)
})

test('no relative link of a document in the package dangles there', () => {
  const problems = documents.flatMap((path) =>
    [...read(path).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link]) => link as string)
      .filter((link) => !/^[a-z]+:/.test(link))
      .flatMap((link) => problemOf(path, link) ?? []),
  )
  expect(documents.length).toBeGreaterThan(10)
  expect(problems).toEqual([])
})
