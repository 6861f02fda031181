/** Names of codes that a person meets; the others go by their number. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [3, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [5, 'LEADER_NOT_AVAILABLE'],
  [6, 'NOT_LEADER_OR_FOLLOWER'],
  [7, 'REQUEST_TIMED_OUT'],
  [10, 'MESSAGE_TOO_LARGE'],
  [14, 'COORDINATOR_LOAD_IN_PROGRESS'],
  [17, 'INVALID_TOPIC_EXCEPTION'],
  [18, 'RECORD_LIST_TOO_LARGE'],
  [19, 'NOT_ENOUGH_REPLICAS'],
  [20, 'NOT_ENOUGH_REPLICAS_AFTER_APPEND'],
  [29, 'TOPIC_AUTHORIZATION_FAILED'],
  [31, 'CLUSTER_AUTHORIZATION_FAILED'],
  [33, 'UNSUPPORTED_SASL_MECHANISM'],
  [45, 'OUT_OF_ORDER_SEQUENCE_NUMBER'],
  [58, 'SASL_AUTHENTICATION_FAILED'],
  [87, 'INVALID_RECORD'],
])

/** A broker answered with a code of Kafka's. */
export class WireError extends Error {
  override readonly name = 'WireError'
  readonly code: number
  /** The code's name. */
  readonly type: string

  constructor(code: number, about: string) {
    const type = NAMES.get(code) ?? `KAFKA_ERROR_${code}`
    super(`Kafka refused ${about}: ${type} (code ${code})`)
    this.code = code
    this.type = type
  }
}

/** A broker could not be reached, or the connection to it ended. */
export class WireConnectionError extends Error {
  override readonly name = 'WireConnectionError'
}
