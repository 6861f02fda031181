/** `shop.*` becomes the LIKE pattern `shop.%`; everything else stands for itself. For error codes too. */
export function streamPatterns(streams: readonly string[] | null): readonly string[] | null {
  if (streams === null) return null
  return streams.map((stream) => stream.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%'))
}
