const SHARE = 4

/**
 * How many places of a claim are kept for retries that are due: one in four over all claims together, so that a claim
 * of one gets there too and neither retries nor new events starve, whatever the limit.
 */
export class DueShare {
  #rest = 0

  /** The places of the next claim. The others are for new events; what either leaves free, the other may have. */
  next(limit: number): number {
    this.#rest += limit
    const places = Math.floor(this.#rest / SHARE)
    this.#rest -= places * SHARE
    return places
  }
}
