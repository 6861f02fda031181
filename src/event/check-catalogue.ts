import { CommitpostError, InvalidOptionsError } from '../runtime/errors.ts'
import type { Catalogue } from './catalogue.ts'
import { type CatalogueFinding, compareCatalogues } from './compare-catalogues.ts'
import {
  type CatalogueDescription,
  describeCatalogue,
  isDescription,
  snapshotText,
} from './describe-catalogue.ts'

/** How a catalogue stands against its snapshot. */
export interface CatalogueCheck {
  readonly compatible: boolean
  readonly findings: readonly CatalogueFinding[]
  /** What the snapshot file should hold from now on. */
  readonly snapshot: string
  /** True when the file holds exactly that already. */
  readonly upToDate: boolean
}

/** The catalogue changed in a way that stored events or running code cannot follow. */
export class IncompatibleCatalogueError extends CommitpostError {
  readonly findings: readonly CatalogueFinding[]

  constructor(findings: readonly CatalogueFinding[]) {
    const lines = findings.map(({ event, path, message }) => `- ${event} ${path}: ${message}`)
    super(
      'CATALOGUE_INCOMPATIBLE',
      `The catalogue is not compatible with its snapshot:\n${lines.join('\n')}\n` +
        'Add fields as optional, or raise the version and give an upcaster from the old one.',
    )
    this.findings = findings
  }
}

/**
 * Holds a catalogue against the text of its snapshot file (made by `snapshotText`). Without a snapshot everything is
 * new and nothing can break.
 * @throws InvalidOptionsError when the text is no snapshot.
 */
export function checkCatalogue(catalogue: Catalogue, snapshot: string | null): CatalogueCheck {
  const before: CatalogueDescription = snapshot === null ? { format: 1, events: [] } : parseSnapshot(snapshot)
  const findings = compareCatalogues(before, describeCatalogue(catalogue))
  const text = snapshotText(catalogue)
  return {
    compatible: findings.every((finding) => !finding.breaking),
    findings,
    snapshot: text,
    // A checkout may turn the ends of lines; that is not a change.
    upToDate: snapshot?.replaceAll('\r\n', '\n') === text,
  }
}

/**
 * For a test of one's own: `assertCompatible(events, readFileSync('events.snapshot.json', 'utf8'))`.
 * @throws IncompatibleCatalogueError naming every breaking change at once.
 */
export function assertCompatible(catalogue: Catalogue, snapshot: string | null): void {
  const breaking = checkCatalogue(catalogue, snapshot).findings.filter((finding) => finding.breaking)
  if (breaking.length > 0) throw new IncompatibleCatalogueError(breaking)
}

function parseSnapshot(text: string): CatalogueDescription {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw new InvalidOptionsError('the catalogue snapshot', [`is no JSON: ${String(error)}`])
  }
  if (isDescription(parsed)) return parsed
  throw new InvalidOptionsError('the catalogue snapshot', [
    'is not a snapshot that this version can read (format 1)',
  ])
}
