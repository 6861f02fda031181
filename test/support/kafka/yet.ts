import { property } from '../../../src/runtime/property.ts'

/** Whether it is so; false where the broker that is asked has not learnt yet what was decided. */
export async function yet(isSo: () => Promise<boolean>): Promise<boolean> {
  try {
    return await isSo()
  } catch (error) {
    if (isPassing(error) || isPassing(property(error, 'cause'))) return false
    throw error
  }
}

/** kafkajs says so of what it would try again; once it has done that in vain, only of the cause. */
function isPassing(error: unknown): boolean {
  return property(error, 'retriable') === true
}
