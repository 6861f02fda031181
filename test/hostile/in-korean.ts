import { expect } from 'vitest'
import { describeFailure } from '../../src/cli/failure.ts'
import { messagesIn } from '../../src/cli/messages/dictionaries.ts'
import { ownerInKorean } from '../../src/cli/messages/owners-ko.ts'
import { type CommitpostError, InvalidEventError, InvalidOptionsError } from '../../src/index.ts'
import { expectNoEnglish } from '../cli/korean.ts'

const messages = await messagesIn('ko')

const QUOTED = /"(?:[^"\\]|\\.)*"/g
const COMMAND = /commitpost [a-z -]+ --help/g

/** Words of others, which are passed on as they are: of Node, and of the tests' own code. */
const OF_OTHERS: readonly RegExp[] = [
  // The engine, about what it was given.
  /Cannot perform 'IsArray' on a proxy that has been revoked/g,
  /Expected property name or '\}' in JSON at position \d+/g,
  /Unexpected end of input/g,
  // What is thrown and is no error is described the same for every log and table.
  /null was thrown/g,
]

/** Without what somebody gave, and without what others say. */
export function saidByUs(text: string): string {
  return [QUOTED, COMMAND, ...OF_OTHERS].reduce((rest, words) => rest.replaceAll(words, '""'), text)
}

/** Fails where options or events are refused in a sentence that has no Korean form, or of an owner that has none. */
export function expectToldInKorean(error: CommitpostError): void {
  if (!(error instanceof InvalidOptionsError || error instanceof InvalidEventError)) return
  expectNoEnglish(saidByUs(describeFailure(error, messages).message))
  // A single word is a name of the code.
  if (error instanceof InvalidOptionsError) expect(ownerInKorean(error.what)).toMatch(/[가-힣]|^[\w.]+$/)
}
