let hasLine = false

/** Replaces the line that says what is going on; outside a terminal each becomes a line of its own. */
export function progressLine(text: string): void {
  if (!process.stdout.isTTY) {
    if (text !== '') process.stdout.write(`${text}\n`)
    return
  }
  process.stdout.write(`${hasLine ? '\r\u001B[K' : ''}${text}`)
  hasLine = text !== ''
}

/** Prints a line that stays. */
export function print(line: string): void {
  progressLine('')
  process.stdout.write(`${line}\n`)
}
