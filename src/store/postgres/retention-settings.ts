import type { RetentionRequest } from '../retention-store.ts'
import { streamPatterns } from './stream-patterns.ts'

/** What a policy says, as the functions of the database read it. Equal settings are the same text there. */
export function retentionSettings({
  stream,
  before,
  keepSeconds,
  archive,
  mask,
  requireExport,
}: RetentionRequest): string {
  const [streamLike] = streamPatterns([stream]) ?? []
  const streamUnlike = streamPatterns(before) ?? []
  return JSON.stringify({ stream, streamLike, streamUnlike, keepSeconds, archive, mask, requireExport })
}
