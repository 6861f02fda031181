const STATUS = 0x72
const STATUS_BYTES = 34
const ASK_AT = 33
const MICROSECONDS = 1_000n
const EPOCH_MS = BigInt(Date.UTC(2000, 0, 1))

/** What the reader tells the server. */
export interface Status {
  /** Written, flushed and applied are the same place: what was handled and recorded. */
  readonly lsn: bigint
  readonly now: Date
  /** Whether the server is to answer at once. */
  readonly asks: boolean
}

/** A status as the server takes it: Standby status update. */
export function statusOf({ lsn, now, asks }: Status): Buffer {
  const status = Buffer.alloc(STATUS_BYTES)
  status[0] = STATUS
  status.writeBigUInt64BE(lsn, 1)
  status.writeBigUInt64BE(lsn, 9)
  status.writeBigUInt64BE(lsn, 17)
  status.writeBigInt64BE((BigInt(now.getTime()) - EPOCH_MS) * MICROSECONDS, 25)
  status[ASK_AT] = asks ? 1 : 0
  return status
}
