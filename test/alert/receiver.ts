import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { comes } from '../support/patience.ts'

/** A request as it came in. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** How to answer; null never answers. */
export type Answer = {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string
} | null

/** A real server for what sinks post. */
export class Receiver implements AsyncDisposable {
  readonly requests: Received[] = []
  /** Asked for every request, with its number from 0 on. */
  answer: (n: number) => Answer = () => ({ status: 200, body: 'ok' })
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      void text(request).then((body) => {
        const { method = '', url: path = '', headers } = request
        const answer = this.answer(this.requests.length)
        this.requests.push({ method, path, headers, body })
        if (answer !== null) response.writeHead(answer.status, answer.headers).end(answer.body)
      })
    })
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
    receiver.#server.listen(0, '127.0.0.1')
    await once(receiver.#server, 'listening')
    return receiver
  }

  /** An address of it, with a path that is a secret. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/services/T0/SECRET`
  }

  /** The bodies as JSON. */
  json<Body>(): readonly Body[] {
    return this.requests.map(({ body }) => JSON.parse(body) as Body)
  }

  async received(count: number): Promise<void> {
    await comes(`${count} requests`, () => this.requests.length >= count)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** An address where nobody listens. */
export async function deafUrl(): Promise<string> {
  await using receiver = await Receiver.start()
  return receiver.url
}
