/** What part of a lease may be lost to a busy machine: heartbeats and results take several such steps, one after the other. */
const LATE = 1 / 10

/**
 * Whether something that takes a few milliseconds took so long that it is written down as a fault of the machine: what everybody
 * meets with then may cost a worker its leases. It is measured by what none of the outbox's own statements take part in, so that
 * none of those can excuse itself by being slow.
 */
export function isLate(tookMs: number, leaseMs: number): boolean {
  return tookMs > leaseMs * LATE
}
