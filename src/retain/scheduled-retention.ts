import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { RetentionRequest, RetentionStore } from '../store/retention-store.ts'
import { carryOut } from './carry-out.ts'
import type { ResolvedRetention } from './retention-options.ts'

/** What a worker's retention is made of. */
export interface ScheduledRetentionParts {
  readonly store: RetentionStore
  readonly retention: ResolvedRetention
  readonly workerId: string
  readonly clock: Clock
  readonly observer: Observer
}

/** How often it is asked whether a policy is due, or whether another worker left a run unfinished. */
const LOOK_EVERY_MS = 60_000

/**
 * Carries the policies out once a day, whichever worker comes first. Any number of workers may look at the same time:
 * the database lets one of them step, and another go on where it is gone.
 */
export class ScheduledRetention {
  readonly #parts: ScheduledRetentionParts
  readonly #stop = new AbortController()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #running: Promise<void> | null = null

  constructor(parts: ScheduledRetentionParts) {
    this.#parts = parts
  }

  /** Looks whether something is due. What is, is carried out beside the caller, who has other things to do. */
  look(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (this.#running !== null || nowMs - this.#lookedAtMs < LOOK_EVERY_MS) return
    this.#lookedAtMs = nowMs
    this.#running = this.#runDue().finally(() => {
      this.#running = null
    })
  }

  /** Takes nothing more away; resolves when the batch under way is over. Never rejects. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #runDue(): Promise<void> {
    for (const request of this.#parts.retention.requests) {
      if (this.#stop.signal.aborted) return
      try {
        await this.#run(request)
      } catch (error) {
        this.#parts.observer({ kind: 'error', during: 'retention', error, subscription: null })
      }
    }
  }

  async #run(request: RetentionRequest): Promise<void> {
    const { store, retention, workerId, clock, observer } = this.#parts
    if (request.archive !== null) await store.ensureArchive(request.archive)
    const runId = await store.beginRetention(request, retention.hour)
    if (runId === null) return
    const { policy, stream } = request
    await carryOut({
      store,
      clock,
      runId,
      stepper: workerId,
      pace: retention.pace,
      act: null,
      signal: this.#stop.signal,
      waitsForOthers: false,
      onStep: ({ deleted, archived }) => {
        if (deleted + archived > 0) observer({ kind: 'retained', policy, stream, deleted, archived })
      },
    })
  }
}
