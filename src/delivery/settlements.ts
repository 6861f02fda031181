import type { Settlement } from './delivery.ts'

/** Handled to a good end. */
export const DONE: Settlement = { kind: 'done' }

/** Given back at once, for anybody. */
export const RELEASE_NOW: Settlement = { kind: 'release', delayMs: 0 }

/** Given back to be claimed again a little later, when what stands before it has moved on. */
export const RELEASE_SOON: Settlement = { kind: 'release', delayMs: 1_000 }

/** Given back to wait behind an earlier event of its key. */
export const PARK: Settlement = { kind: 'park' }
