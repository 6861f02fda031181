import type { Bar, Results } from './results.ts'
import type { BenchDatabase } from './server.ts'

/** The backlog of the drains of a whole run. */
export const FULL_EVENTS = 200_000

/** What a scenario works with. */
export interface Session {
  readonly database: BenchDatabase
  /** The backlog of the drains; longer and shorter ones are in proportion to it. */
  readonly events: number
  readonly round: number
  readonly results: Results
  /** Whether a contender takes part. */
  includes(contender: string): boolean
  /** Replaces the line that says what is going on. */
  progress(text: string): void
}

/** Something that is measured once per round. */
export interface Scenario {
  readonly name: string
  /** The names of all who can take part, in the order of the chart. */
  readonly contenders: readonly string[]
  /** Windows, loads and settings that decide its figures: rounds of another method are never put together with them. */
  readonly method: Readonly<Record<string, unknown>>
  /** Measures one round and adds its samples to the results. */
  run(session: Session): Promise<void>
  /** What is asked of the medians. */
  bars(results: Results): readonly Bar[]
}
