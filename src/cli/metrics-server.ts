import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PrometheusMetrics } from '../inspect/prometheus-metrics.ts'
import { describeError } from '../runtime/text.ts'
import { CliError } from './cli-error.ts'

/** Where metrics are served. */
export interface MetricsAddress {
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
}

/** Serves metrics until it is disposed of. */
export interface MetricsServer extends AsyncDisposable {
  /** Where Prometheus finds them. */
  readonly url: string
}

const PATH = '/metrics'

/** Serves `GET /metrics`. @throws CliError that says why, when the address cannot be used. */
export async function serveMetrics(
  metrics: Pick<PrometheusMetrics, 'contentType' | 'render'>,
  { host, port }: MetricsAddress,
): Promise<MetricsServer> {
  const server = createServer((request, response) => void answer(metrics, request, response))
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    const reason = describeError(error)
    throw new CliError('CANNOT_LISTEN', ({ metrics: say }) => say.cannotListen(host, port, reason), {
      cause: error,
    })
  }
  const address = server.address() as AddressInfo
  const shownHost = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    url: `http://${shownHost}:${address.port}${PATH}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(
  metrics: Pick<PrometheusMetrics, 'contentType' | 'render'>,
  { method, url }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') return refuse(response, 405, { allow: 'GET, HEAD' })
  if (url?.split('?')[0] !== PATH) return refuse(response, 404, {})
  const text = await metrics.render()
  response.writeHead(200, {
    'content-type': metrics.contentType,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.end(method === 'HEAD' ? undefined : text)
}

function refuse(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  response.writeHead(status, { ...headers, 'content-type': 'text/plain; charset=utf-8' })
  response.end(`Metrics are at ${PATH}.\n`)
}
