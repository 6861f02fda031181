import { vi } from 'vitest'
import { eventually } from './program.ts'

/** Waits end with what they wait for; this is only for what never comes, on a machine that does much else. */
const PATIENCE_MS = 60_000

/** For files whose tests start processes and servers, and break them. */
export function bePatient(): void {
  vi.setConfig({ testTimeout: 3 * PATIENCE_MS, hookTimeout: 3 * PATIENCE_MS })
}

/** Waits until the condition holds, as long as a test may. */
export async function comes(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what, condition, PATIENCE_MS)
}
