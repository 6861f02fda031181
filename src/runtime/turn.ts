/** Resolves when timers and sockets had a turn: sooner than any timer, and later than every promise that is settled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
