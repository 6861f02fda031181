/** What every event and every job carries: about 350 bytes of JSON. */
export interface BenchPayload {
  readonly orderId: number
  readonly note: string
  /** When it was sent, by `nowMicros`; only where the latency is measured. */
  readonly sentAt?: number
}

const NOTE_LENGTH = 320

/** The payload of the event with this number. */
export function payloadOf(orderId: number): BenchPayload {
  return { orderId, note: 'x'.repeat(NOTE_LENGTH) }
}

/** The same payload in SQL, for the number in `i`. */
export const PAYLOAD_SQL = `jsonb_build_object('orderId', i, 'note', repeat('x', ${NOTE_LENGTH}))`

/** Microseconds of a clock that all processes of the machine share and that never goes back. */
export function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}
