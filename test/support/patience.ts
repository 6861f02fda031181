import { vi } from 'vitest'
import { PATIENCE_MS, TEST_MS } from './patience-ms.ts'
import { eventually } from './program.ts'

/** For files whose tests start processes and servers, and break them. */
export function bePatient(): void {
  vi.setConfig({ testTimeout: TEST_MS, hookTimeout: TEST_MS })
}

/** Waits until the condition holds, as long as a test may. */
export async function comes(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what, condition, PATIENCE_MS)
}
