/**
 * Waits end with what they wait for; this is only for what never comes. Long enough for a machine that is several times slower
 * than usual and does much else.
 */
export const PATIENCE_MS: number = 240_000

/** How long a test may take, and whatever is done before and after one: a few such waits. */
export const TEST_MS: number = 3 * PATIENCE_MS
