/** Nothing in the tables is older. */
export const EARLIEST_TIME_MS = 0

/** The end of 9998: in every zone it is still of a year of four digits, which all drivers and servers read the same. */
export const LATEST_TIME_MS: number = Date.UTC(9_999, 0) - 1
