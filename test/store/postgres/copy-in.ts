import type pg from 'pg'

/** As much of pg's connection as a COPY needs; its types leave it out. */
interface CopyConnection {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

/** Runs `copy … from stdin` with the given lines. */
export function copyIn(client: pg.PoolClient, text: string, lines: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let failure: Error | null = null
    const copy = {
      submit: (connection: unknown) => (connection as CopyConnection).query(text),
      handleCopyInResponse: (connection: CopyConnection) => {
        connection.sendCopyFromChunk(Buffer.from(lines))
        connection.endCopyFrom()
      },
      handleCommandComplete: () => undefined,
      handleError: (error: Error) => {
        failure = error
      },
      handleReadyForQuery: () => (failure === null ? resolve() : reject(failure)),
    }
    client.query(copy as unknown as pg.Submittable)
  })
}
