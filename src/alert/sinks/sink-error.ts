/** Why a sink did not take an alert. Holds neither address nor key: it is logged. */
export class SinkError extends Error {
  /** True when the same alert would be refused again. */
  readonly permanent: boolean
  /** How long the other side asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null

  constructor(
    message: string,
    options: { readonly permanent: boolean; readonly retryAfterMs?: number | null },
  ) {
    super(message)
    this.name = 'SinkError'
    this.permanent = options.permanent
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}
