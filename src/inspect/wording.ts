/** How numbers and times are written: a person's language has its own ways. */
export interface Wording {
  readonly count: (value: number) => string
  readonly time: (at: Date) => string
  /** A length of time, given in seconds. */
  readonly age: (seconds: number) => string
}

/** For logs and programs: nothing that depends on a language or a zone. */
export const plainWording: Wording = {
  count: String,
  time: (at) => at.toISOString(),
  age: (seconds) => `${Math.round(seconds)} s`,
}
