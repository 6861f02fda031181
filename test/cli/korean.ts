import { expect } from 'vitest'

/** Three words in a row that are not part of a command: nobody who chose Korean should have to read them. */
const ENGLISH = /[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}/

/** Commands, and statements that are to be sent to the server, are the same in every language. */
const TO_BE_TYPED = /"commitpost [^"]*"|(?:alter|select|drop|create) [^가-힣]*/g

/** Fails where a text for somebody who chose Korean has a stretch of English, or a gap that nothing was put into. */
export function expectKorean(text: string): void {
  expectNoEnglish(text)
  expect(text).not.toMatch(/\{\w+\}/)
}

/** The same of a text without gaps: in what is said about options, `{stream}` is part of a topic's name. */
export function expectNoEnglish(text: string): void {
  expect(text.replaceAll(TO_BE_TYPED, '')).not.toMatch(ENGLISH)
  expect(text).toMatch(/[가-힣]/)
}
