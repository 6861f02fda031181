// Two columns in every terminal: Hangul, Han, Kana, fullwidth forms and what stands between them in Unicode (East
// Asian Width W and F), emoji, and the regional indicators, a pair of which is a flag.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\p{Regional_Indicator}|\ufe0f/u
// Marks, format characters, controls, and the vowels and finals of a Hangul syllable that is written in parts.
const NO_WIDTH = /^[\p{Mark}\p{Format}\p{Control}\u1160-\u11ff\ud7b0-\ud7ff]+$/u

/** One column for each character. */
const PLAIN = /^[\x20-\x7e]*$/

let segmenter: Intl.Segmenter | undefined

/** Made when a text first needs it: that takes longer than to load all of a small command, and every worker loads this. */
function graphemesOf(text: string): Iterable<Intl.SegmentData> {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  return segmenter.segment(text)
}

/** How many columns of a terminal the text takes: two for each Korean syllable, none for an accent. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemesOf(text)) width += graphemeWidth(segment)
  return width
}

/** The text with spaces up to the given width, on the right or, for numbers, on the left. */
export function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const spaces = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return align === 'left' ? text + spaces : spaces + text
}

/** The text, or as much of its beginning as fits into the width with an ellipsis at the end. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let kept = ''
  let used = 1 // the ellipsis
  for (const { segment } of graphemesOf(text)) {
    used += graphemeWidth(segment)
    if (used > width) break
    kept += segment
  }
  return `${kept}…`
}

function graphemeWidth(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0
  return WIDE.test(grapheme) ? 2 : 1
}
