import { existsSync } from 'node:fs'

const places = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
)

/**
 * The library that fakes the clock of a whole process: Debian's package faketime. Null where it is not installed; then
 * the library under test is handed a wrong clock.
 */
export function faketimeLibrary(): string | null {
  return places.find((place) => existsSync(place)) ?? null
}
