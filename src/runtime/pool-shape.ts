import { property } from './property.ts'

/**
 * Whether a value hands out clients by `connect`. A client of `pg` has that method too, and throws when it is called again;
 * it is known by the process that serves it, and one of a pool by the way back.
 */
export function isPoolOfClients(value: unknown): boolean {
  if (typeof property(value, 'connect') !== 'function') return false
  return property(value, 'processID') === undefined && typeof property(value, 'release') !== 'function'
}
