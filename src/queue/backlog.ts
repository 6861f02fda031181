import type { ClaimedDelivery, Settlement } from '../delivery/delivery.ts'
import type { Held } from './hand.ts'

/** Something in hand that is to be given back instead of run. */
export interface GivenBack<Delivery extends ClaimedDelivery> {
  readonly held: Held<Delivery>
  readonly settlement: Settlement
}

/**
 * What is in hand and not started, and in which order it may start. It knows nothing of handlers or databases: its
 * runner tells it what happens, and gives back what it names.
 */
export interface Backlog<Delivery extends ClaimedDelivery> {
  /** How many could start now. */
  readonly ready: number
  /** Takes note that a claim has been sent. Returns its number. */
  claimSent(): number
  /** Takes in what that claim returned. Returns what may not run and must be given back. */
  offer(batch: readonly Held<Delivery>[], claim: number): readonly GivenBack<Delivery>[]
  /** The next that may start, marked as running; null if there is none. */
  next(): Held<Delivery> | null
  /**
   * Takes in what that claim returned of suspects, which its caller runs by itself, each before all others of its key.
   * Returns those that may run now. With the rest something earlier of the key is in hand or on its way back. None may
   * once it is closed.
   */
  adopt(suspects: readonly Held<Delivery>[], claim: number): readonly Held<Delivery>[]
  /**
   * Takes note of how a running one ended. Returns what may not run because of it. Of one that was completed in its
   * handler's own transaction the end is not known before `settled`.
   */
  ended(held: Held<Delivery>, settlement: Settlement, completed: boolean): readonly GivenBack<Delivery>[]
  /**
   * Takes note that a result cannot be written for now, because the database refuses it or somebody has its row locked:
   * there it is in hand until its lease lapses. Returns what may not run because of it. How it ends is told by `settled`,
   * or by a claim that brings it again.
   */
  unwritten(held: Held<Delivery>, settlement: Settlement): readonly GivenBack<Delivery>[]
  /** Takes note of what came of settling: what is written now, or that it was lost. */
  settled(held: Held<Delivery>, settlement: Settlement, lost: boolean): readonly GivenBack<Delivery>[]
  /**
   * Takes out lost ones that have not started, and returns what may not run because of it. `known` if the database says
   * that they are lost; otherwise they are given up by our own clock, and the database is still to be told.
   */
  lose(lost: readonly Held<Delivery>[], known: boolean): Losses<Delivery>
  /** What is to be written for one that has to run again, after an earlier one of its key that does. */
  afterOutrun(settlement: Settlement): Settlement
  /** Takes out everything that has not started and waits for nothing that is running. Nothing starts afterwards. */
  close(): readonly GivenBack<Delivery>[]
}

/** What losing leases does to a backlog. */
export interface Losses<Delivery extends ClaimedDelivery> {
  /** Lost before they were started: there is nothing to wait for and nothing to write. */
  readonly dropped: readonly Held<Delivery>[]
  /** Behind a lost one of their key, and so to be given back. */
  readonly givenBack: readonly GivenBack<Delivery>[]
}
