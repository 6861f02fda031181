import { onAbort } from './abort.ts'
import { CommitpostError } from './errors.ts'

type Waiter = () => void

/**
 * Lets many run together, or one alone.
 *
 * Ordinary work enters and leaves; a suspect that may take the process down with it asks to be alone, waits for
 * those inside to leave, and holds back newcomers meanwhile. Phases alternate: when a soloist leaves, those who
 * waited behind it enter before the next soloist, so neither side starves.
 */
export class SoloGate {
  #inside = 0
  #soloing = false
  readonly #waitingSolos: Waiter[] = []
  readonly #waitingShared: Waiter[] = []

  /** Enters at once, unless somebody is alone inside or waits to be. Costs two comparisons. */
  tryEnter(): boolean {
    if (this.#soloing || this.#waitingSolos.length > 0) return false
    this.#inside += 1
    return true
  }

  /** Enters as soon as it may. Resolves to false, outside, when the signal aborts first. */
  async enter(signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true) return false
    if (this.tryEnter()) return true
    return waitIn(this.#waitingShared, signal)
  }

  /** Ends one successful `tryEnter` or `enter`. */
  leave(): void {
    if (this.#inside === 0) throw new CommitpostError('INTERNAL', 'SoloGate: leave() without enter()')
    this.#inside -= 1
    if (this.#inside === 0 && this.#waitingSolos.length > 0) this.#admitSolo()
  }

  /** Waits to be alone. Resolves to the way out, or to null when the signal aborts first. */
  async exclusive(signal?: AbortSignal): Promise<(() => void) | null> {
    if (signal?.aborted === true) return null
    if (this.#soloing || this.#inside > 0 || this.#waitingSolos.length > 0) {
      const admitted = await waitIn(this.#waitingSolos, signal)
      if (!admitted) {
        // Whoever waited behind this soloist only may go on.
        if (!this.#soloing && this.#waitingSolos.length === 0) this.#admitShared()
        return null
      }
    }
    this.#soloing = true
    return this.#wayOut()
  }

  #wayOut(): () => void {
    let left = false
    return () => {
      if (left) return
      left = true
      this.#soloing = false
      this.#admitShared()
      if (this.#inside === 0 && this.#waitingSolos.length > 0) this.#admitSolo()
    }
  }

  #admitSolo(): void {
    // Set here, not when the waiter's promise resumes: nobody may slip in between.
    this.#soloing = true
    this.#waitingSolos.shift()?.()
  }

  #admitShared(): void {
    const waiting = this.#waitingShared.splice(0)
    this.#inside += waiting.length
    for (const admit of waiting) admit()
  }
}

/** Resolves to true when called from the queue, to false, out of the queue, when the signal aborts first. */
function waitIn(queue: Waiter[], signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const admit: Waiter = () => {
      stopListening()
      resolve(true)
    }
    const stopListening = onAbort(signal, () => {
      queue.splice(queue.indexOf(admit), 1)
      resolve(false)
    })
    queue.push(admit)
  })
}
