import { existsSync } from 'node:fs'
import { available } from '../support/servers.ts'

const places = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
)

/**
 * The library that fakes the clock of a whole process: Debian's package faketime. Null where it is not installed, which is
 * said in a line; then the library under test is handed a wrong clock.
 */
export function faketimeLibrary(): string | null {
  const place = places.find((path) => existsSync(path))
  available('faketime, for wrong clocks of whole processes,', place !== undefined)
  return place ?? null
}
