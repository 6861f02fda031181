import type { DeadLetter, DeadLetterFilter, DeadLetterStore } from '../store/dead-letter-store.ts'
import type { LetterMask } from './masked-letter.ts'

/** Few enough that a page of the largest payloads fits into memory. */
const PAGE = 50

/** Every dead letter of the filter, newest first, page by page, as the mask leaves it. */
export async function* exportDeadLetters(
  store: Pick<DeadLetterStore, 'listDeadLetters'>,
  filter: DeadLetterFilter,
  mask: LetterMask,
): AsyncGenerator<DeadLetter, void, undefined> {
  let before: string | undefined
  for (;;) {
    const page = await store.listDeadLetters({
      ...filter,
      limit: PAGE,
      ...(before === undefined ? {} : { before }),
    })
    for (const letter of page) yield mask(letter)
    before = page.at(-1)?.id
    if (page.length < PAGE) return
  }
}
