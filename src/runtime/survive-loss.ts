interface Client {
  on?(event: 'error', listener: (error: Error) => void): unknown
  removeListener?(event: 'error', listener: (error: Error) => void): unknown
}

const ignore = (): void => undefined

/**
 * For as long as a client is checked out; what is returned ends it. A `pg` client whose connection breaks emits 'error', which
 * ends the process if nobody listens. The statement under way, or the next one, fails with the same news.
 */
export function surviveLoss(client: Client): () => void {
  client.on?.('error', ignore)
  return () => {
    client.removeListener?.('error', ignore)
  }
}
