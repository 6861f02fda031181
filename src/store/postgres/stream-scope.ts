import type { LoggedEvent, StreamScope } from '../stream-store.ts'

interface ScopeRow {
  readonly streamLike: readonly string[] | null
  readonly eventTypes: readonly string[] | null
  readonly startFrom: 'now' | 'beginning' | 'time'
  /** In milliseconds. */
  readonly startAt: number | null
  readonly began: string | null
}

interface Scope extends ScopeRow {
  readonly isLike: readonly RegExp[] | null
  /** What has this transaction id or a later one was written after it began. */
  readonly newFrom: number
  /** What has an id below this was written before it began. */
  readonly oldBelow: number
  readonly open: ReadonlySet<number>
}

/** What a subscription wants, by the rows of `outbox_scope`: the same answer as `verify` gives. */
export function streamScope(json: string): StreamScope {
  const scopes = (JSON.parse(json) as readonly ScopeRow[]).map(toScope)
  const byStream = new Map<string, Map<string, readonly Scope[]>>()
  let last: { readonly stream: string; readonly type: string; readonly matching: readonly Scope[] } | null =
    null
  return {
    wants: (event) => {
      const { stream, type } = event
      // Nearly always those of the event before, and then the very same texts.
      if (last?.stream !== stream || last.type !== type) {
        last = { stream, type, matching: matchingOf(scopes, byStream, event) }
      }
      for (const scope of last.matching) if (hasBegun(scope, event)) return true
      return false
    },
  }
}

/** The scopes that an event's stream and type are in, worked out once for each of them. */
function matchingOf(
  scopes: readonly Scope[],
  byStream: Map<string, Map<string, readonly Scope[]>>,
  event: LoggedEvent,
): readonly Scope[] {
  const { stream, type } = event
  const byType = byStream.get(stream) ?? new Map<string, readonly Scope[]>()
  if (byType.size === 0) byStream.set(stream, byType)
  let matching = byType.get(type)
  if (matching === undefined) {
    matching = scopes.filter((scope) => matches(scope, event))
    byType.set(type, matching)
  }
  return matching
}

function toScope(row: ScopeRow): Scope {
  const [oldBelow = '0', newFrom = '0', open = ''] = (row.began ?? '').split(':')
  return {
    ...row,
    isLike: row.streamLike?.map(likePattern) ?? null,
    oldBelow: Number(oldBelow),
    newFrom: Number(newFrom),
    open: new Set(open === '' ? [] : open.split(',').map(Number)),
  }
}

function matches({ isLike, eventTypes }: Scope, { stream, type }: LoggedEvent): boolean {
  const hasStream = isLike === null || isLike.some((pattern) => pattern.test(stream))
  return hasStream && (eventTypes === null || eventTypes.includes(type))
}

function hasBegun(scope: Scope, event: LoggedEvent): boolean {
  if (scope.startFrom === 'beginning') return true
  const { xid } = event
  if (xid >= scope.newFrom) return true
  if (scope.startAt !== null && event.createdAt.getTime() >= scope.startAt) return true
  return xid >= scope.oldBelow && scope.open.has(xid)
}

/** The pattern of LIKE, with a backslash before what stands for itself. */
function likePattern(like: string): RegExp {
  const source = like.replaceAll(/\\(.)|%|_|[^\\%_]/gsu, (part, escaped: string | undefined) => {
    if (escaped !== undefined) return literal(escaped)
    if (part === '%') return '.*'
    return part === '_' ? '.' : literal(part)
  })
  return new RegExp(`^${source}$`, 'su')
}

// Nothing else: what needs no backslash may not have one in a pattern of Unicode, not even "-".
function literal(character: string): string {
  return character.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
}
