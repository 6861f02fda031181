import type { Trial } from './trial.ts'

/** One thing broken, and what has to come of it. */
export interface Variant {
  /** What is broken: the test's title. */
  readonly name: string
  readonly order: 'none' | 'aggregate'
  /** What the subscription takes at first, if not everything. */
  readonly types?: readonly string[]
  /** What has to be said against it, all of it and nothing else: the checker's names and those of the tables. */
  readonly caught: readonly string[]
  /** The scenario. It breaks the thing itself, by the trial, where it is asked to. */
  play(trial: Trial): Promise<void>
}
