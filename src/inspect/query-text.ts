// Names in double quotes stay. What is quoted may hold anything: digits, other quotes, what looks like a comment.
const PARTS = [
  /"(?:[^"]|"")*"?/,
  /\$((?:[A-Za-z_]\w*)?)\$[\s\S]*?(?:\$\1\$|$)/,
  /(?<!\w)[eE]'(?:[^'\\]|''|\\[\s\S])*(?:'|$)/,
  /'(?:[^']|'')*(?:'|$)/,
  /--.*/,
  /\/\*[\s\S]*?(?:\*\/|$)/,
  /(?<![\w$])\d+(?:\.\d+)?\b/,
]
const LITERALS = new RegExp(PARTS.map(({ source }) => source).join('|'), 'g')
const LONGEST = 200

/** The text of a statement without the values in it, on one line, cut: values may be what nobody else is to see. */
export function queryWithoutValues(query: string): string {
  const line = query.replaceAll(LITERALS, placeholder).replaceAll(/\s+/g, ' ').trim()
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
}

function placeholder(found: string): string {
  if (found.startsWith('"')) return found
  return found.startsWith('--') || found.startsWith('/*') ? ' ' : '?'
}
