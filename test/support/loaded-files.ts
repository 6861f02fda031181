/** What `programs/loaded-files.ts` is told. */
export interface LoadedFilesConfig {
  readonly url: string
  readonly schema: string
  readonly engine: 'queue' | 'stream'
}

/** Files of ours, from `src/` on. */
export interface LoadedFiles {
  /** Until the worker had started. */
  readonly atStart: readonly string[]
  /** From then on, until it had stopped; meanwhile an event was dead. */
  readonly later: readonly string[]
}
