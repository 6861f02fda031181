/** Milliseconds of the one clock that all processes of this machine share and that nobody can set. */
export function sharedMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
