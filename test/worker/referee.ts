/** As much of an event as the order of a key needs. */
export interface Step {
  readonly position: string
  readonly key?: string
  readonly aggregateId?: string
}

/** Watches handlers of an ordered subscription and writes down, in words, whatever is out of order. */
export class Referee {
  readonly faults: string[] = []
  readonly #over = new Set<string>()
  readonly #running = new Map<string, { readonly position: number; readonly worker: number }>()
  readonly #published = new Map<string, number[]>()

  /** An event was published. */
  publish(step: Step): void {
    const key = keyOf(step)
    this.#published.set(key, [...(this.#published.get(key) ?? []), Number(step.position)])
  }

  /** A worker began to handle it. */
  start(step: Step, worker: number): void {
    const key = keyOf(step)
    const position = Number(step.position)
    const other = this.#running.get(key)
    if (other !== undefined)
      this.faults.push(`${position} of ${key} started while ${other.position} was running`)
    this.#running.set(key, { position, worker })
    const skipped = (this.#published.get(key) ?? []).filter(
      (one) => one < position && !this.#over.has(`${key}/${one}`),
    )
    if (skipped.length > 0) this.faults.push(`${position} of ${key} started before ${skipped.join(', ')}`)
  }

  /** It ended; if for good, later events of its key may follow. */
  end(step: Step, forGood: boolean): void {
    this.#running.delete(keyOf(step))
    if (forGood) this.#over.add(`${keyOf(step)}/${step.position}`)
  }

  /** These workers are gone, and so is what they were running. */
  vanish(workers: ReadonlySet<number>): void {
    for (const [key, { worker }] of this.#running) if (workers.has(worker)) this.#running.delete(key)
  }
}

function keyOf({ key, aggregateId }: Step): string {
  return key ?? aggregateId ?? ''
}
