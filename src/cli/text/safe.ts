// C0, DEL and C1 drive a terminal; the bidirectional controls make text look like another one.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu
const CONTROLS_BUT_LINE_ENDS =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
// A whole escape sequence goes, so that no "[31m" is left of it.
const ESCAPE_SEQUENCE =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]/gu
// What JSON leaves as it is in a string, although a terminal obeys it.
const UNESCAPED_IN_JSON = /[\u007f-\u009f\u2028\u2029]/gu

/** Text of unknown origin on one line of a terminal: no controls, line ends and tabs as spaces. */
export function safeLine(text: string): string {
  return text
    .replace(ESCAPE_SEQUENCE, '')
    .replace(/[\t\r\n]+/g, ' ')
    .replace(CONTROLS, '')
}

/** Text of unknown origin on any number of lines: no controls but line ends. */
export function safeBlock(text: string): string {
  return text
    .replace(ESCAPE_SEQUENCE, '')
    .replaceAll('\r\n', '\n')
    .replaceAll('\t', '  ')
    .replace(CONTROLS_BUT_LINE_ENDS, '')
}

/** The value as JSON that is also safe to show: the few controls that JSON lets through are escaped, nothing is lost. */
export function safeJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replace(
    UNESCAPED_IN_JSON,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
