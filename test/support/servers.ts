/**
 * Whether a suite that needs this server can run. If not, says so in one line, and the suite is skipped; in CI, where
 * everything must be there, it fails instead.
 */
export function available(server: string, isThere: boolean): boolean {
  if (isThere) return true
  if (process.env['CI']) throw new Error(`${server} is not installed, and in CI it has to be`)
  process.stderr.write(`skipped: ${server} is not installed\n`)
  return false
}
