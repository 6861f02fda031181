import { runPeriodically } from '../runtime/periodic.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import type { LogGap, LogSession, MissedEvents, StreamLease } from '../store/stream-store.ts'
import { followLog } from './follow-log.ts'
import { leaseLost } from './lease-lost.ts'
import { LogRun } from './log-run.ts'
import { PassRecord } from './pass-record.ts'
import { mergePlaces } from './progress-recorder.ts'
import { beatEveryMs, type StreamReaderParts } from './reader-parts.ts'

/** One worker's time with the log of a subscription. */
export interface LogTurnParts extends StreamReaderParts {
  readonly lease: StreamLease
  /** When the lease was asked for, by the process's own clock. */
  readonly confirmedMs: number
  /** Told once the log is read. */
  onWell(): void
}

const JITTER = 0.1
const WATCHES_PER_LEASE = 30
/** Before the next look into the table, while the log cannot begin yet. */
const PASS_EVERY_MS = 100

/** From taking the log to giving it back. */
export class LogTurn {
  readonly #parts: LogTurnParts
  readonly #over = new AbortController()
  #failure: { readonly error: unknown } | null = null
  #confirmedMs: number
  #isLost = false
  #isPaused = false
  #current: {
    readonly running: number
    readonly parkedTo: bigint
    stop(): Promise<void>
    confirmed(): void
  } | null = null
  #session: LogSession | null = null
  /** Aborts, with why, when the log is given up. */
  #givenUp = new AbortController()
  #dropping: Promise<void> | null = null

  constructor(parts: LogTurnParts) {
    this.#parts = parts
    this.#confirmedMs = parts.confirmedMs
  }

  get running(): number {
    return this.#current?.running ?? 0
  }

  /** Ends it, for this reason or, with null, because it is to end. */
  end(error: unknown): void {
    if (this.#over.signal.aborted) return
    this.#failure = error === null ? null : { error }
    this.#over.abort()
    void this.#current?.stop()
  }

  /** Ends it if its lease has lapsed: asked before what was handed over a while ago is sent. */
  expire(): void {
    this.#loseIfLapsed(leaseLost())
  }

  /** Reads until it is ended. Returns why, if there is a reason. Never rejects. */
  async run(): Promise<{ readonly error: unknown } | null> {
    const { store, lease } = this.#parts
    const done = new AbortController()
    const beats = this.#keepLease(done.signal)
    try {
      await this.#read(store.openLog(lease))
    } catch (error) {
      this.end(error)
    }
    done.abort()
    await beats
    await store.releaseStream(lease).catch(() => undefined)
    return this.#failure
  }

  async #read(session: LogSession): Promise<void> {
    this.#session = session
    try {
      let gap = await session.gap()
      while (!this.#over.signal.aborted) {
        if (gap !== null) await this.#catchUp(session, gap)
        if (this.#over.signal.aborted) return
        gap = await this.#follow(session)
      }
    } finally {
      this.#session = null
      await this.#dropping
      await session.close()
    }
  }

  /** Reads the log until the turn is over, or until it is given up. */
  async #follow(session: LogSession): Promise<LogGap | null> {
    const { store, lease, clock, subscription, observer } = this.#parts
    const givenUp = this.#givenUp.signal
    const gap = await followLog(session, {
      newRun: (onPassed) => this.#newRun(mergePlaces, onPassed),
      // Of a log that is given up nothing is recorded any more: what was handled meanwhile comes again from the table.
      record: async (progress) => (await store.recordProgress(lease, progress)) || givenUp.aborted,
      settledAt: lease.walAt,
      clock,
      until: AbortSignal.any([this.#over.signal, givenUp]),
      onBegun: () => {
        this.#parts.onWell()
        observer({ kind: 'streaming', subscription: subscription.name })
      },
      onFailed: (error) => this.end(error),
    })
    return givenUp.aborted ? (givenUp.reason as LogGap) : gap
  }

  /** The server need not keep anything for us, at once and whatever handlers still do: its disk is everybody's. */
  #giveUpLog(session: LogSession, why: LogGap): void {
    this.#givenUp.abort(why)
    this.#dropping ??= session.dropLog(why).catch((error: unknown) => this.end(error))
  }

  /** Another log may begin. */
  async #beginAnew(session: LogSession, gap: LogGap): Promise<void> {
    await this.#dropping
    this.#dropping = null
    this.#givenUp = new AbortController()
    await session.dropLog(gap)
  }

  /**
   * Delivers from the table what the log does not have, and begins the log anew. Twice: the server keeps nothing for us
   * while the bulk of it is handled, however long that takes, and the log begins while little is left.
   */
  async #catchUp(session: LogSession, gap: LogGap): Promise<void> {
    const { observer, subscription } = this.#parts
    if (gap !== 'new') observer({ kind: 'streamGap', subscription: subscription.name, reason: gap })
    await this.#beginAnew(session, gap)
    let count = (await this.#pass(session)).count
    count += await this.#passUntilLog(session)
    if (gap !== 'new' && !this.#over.signal.aborted) {
      observer({ kind: 'streamRecovered', subscription: subscription.name, count })
    }
  }

  /** The log begins when all transactions that are open now have ended: until then the table is served. */
  async #passUntilLog(session: LogSession): Promise<number> {
    let count = 0
    const waiting = new AbortController()
    const begun = session.beginLog().finally(() => waiting.abort())
    // It is awaited below, unless the turn ends before.
    begun.catch(() => undefined)
    const until = AbortSignal.any([waiting.signal, this.#over.signal])
    while (!this.#over.signal.aborted) {
      if (this.#givenUp.signal.aborted) throw grewTooLarge()
      if (waiting.signal.aborted) await begun
      const passed = await this.#pass(session)
      count += passed.count
      if (passed.reachesLog) break
      await this.#parts.clock.sleep(PASS_EVERY_MS, until)
    }
    return count
  }

  /** Hands over what the table has, up to now or to where the log begins. */
  async #pass(session: LogSession): Promise<{ readonly count: number; readonly reachesLog: boolean }> {
    if (this.#over.signal.aborted) return { count: 0, reachesLog: false }
    await using missed = await session.missed()
    const record = new PassRecord(missed, (error) => this.end(error))
    const run = this.#newRun<string>(
      (_, later) => later,
      (positions) => record.passed(positions),
    )
    const count = await this.#handOver(missed, run)
    await run.empty()
    await run.stop()
    await record.idle()
    if (this.#over.signal.aborted) return { count, reachesLog: false }
    if (missed.reachesLog && this.#givenUp.signal.aborted) throw grewTooLarge()
    if (!(await missed.finished())) throw leaseLost()
    return { count, reachesLog: missed.reachesLog }
  }

  async #handOver(missed: MissedEvents, run: LogRun<string>): Promise<number> {
    let count = 0
    while (!this.#over.signal.aborted) {
      await run.room()
      const page = await missed.next()
      const last = page.at(-1)
      if (last === undefined) break
      for (const event of page) run.offer(event)
      run.mark(last.position)
      count += page.length
    }
    return count
  }

  #newRun<Place>(
    merge: (earlier: Place, later: Place) => Place,
    onPassed: (places: readonly Place[]) => void,
  ): LogRun<Place> {
    const { leaseMs, marginMs, subscription, lease } = this.#parts
    const run = new LogRun<Place>({
      ...this.#parts,
      // What this turn has set aside may come again from the table.
      parkedTo: this.#current?.parkedTo ?? BigInt(lease.parkedTo),
      subscription: subscription.name,
      orderBy: subscription.orderBy,
      isGood: (atMs) => !this.#isPaused && atMs - this.#confirmedMs <= leaseMs - marginMs,
      mergePlaces: merge,
      onPassed,
      onFailed: (error) => this.end(error),
    })
    this.#current = run
    return run
  }

  async #keepLease(signal: AbortSignal): Promise<void> {
    const { leaseMs, clock, random } = this.#parts
    const periodic = { jitter: JITTER, clock, random, signal }
    await Promise.all([
      runPeriodically({
        ...periodic,
        everyMs: beatEveryMs(leaseMs),
        run: () => this.#beat(),
        onError: (error) => this.#loseIfLapsed(error),
      }),
      // A heartbeat may get no answer for long, and this process may have been asleep.
      runPeriodically({
        ...periodic,
        everyMs: leaseMs / WATCHES_PER_LEASE,
        run: () => this.expire(),
        onError: () => undefined,
      }),
    ])
  }

  /** By this process's own clock: another may read by now. */
  #loseIfLapsed(error: unknown): void {
    const { clock, leaseMs } = this.#parts
    if (clock.monotonicMs() - this.#confirmedMs > leaseMs) this.#lose(error)
  }

  async #beat(): Promise<void> {
    const { store, lease, leaseMs, clock, walBudgetBytes } = this.#parts
    const askedMs = clock.monotonicMs()
    const beat = await store.beatStream(lease, leaseMs)
    if (!beat.held) return this.#lose(leaseLost())
    this.#confirmedMs = askedMs
    this.#isPaused = beat.paused
    this.#current?.confirmed()
    if (this.#session === null) return
    if (!beat.published) this.#giveUpLog(this.#session, 'publication-changed')
    else if (beat.retainedBytes > walBudgetBytes) this.#giveUpLog(this.#session, 'wal-budget')
  }

  /** Another reads, or may: what runs here is told to stop. */
  #lose(error: unknown): void {
    if (this.#isLost) return
    this.#isLost = true
    this.end(error)
    this.#parts.interrupt(leaseLost(), this.#parts.marginMs)
  }
}

function grewTooLarge(): RefusedError {
  return new RefusedError(
    'stream-log-too-long',
    'While the table was served, the server kept more of the log than walBudgetBytes: it was given up, and begins anew.',
  )
}
