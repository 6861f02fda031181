import type { ConnectorEngine, ConnectorRequest } from '../debezium/connector-request.ts'

/** The parts of a request that the address of a database says. */
export type DebeziumSource = Pick<ConnectorRequest, 'engine' | 'host' | 'port' | 'user' | 'database'> & {
  /** Empty if the address has none. */
  readonly password: string
}

interface Scheme {
  readonly engine: ConnectorEngine
  readonly port: number
}

const SCHEMES: Readonly<Record<string, Scheme>> = {
  'postgres:': { engine: 'postgres', port: 5432 },
  'postgresql:': { engine: 'postgres', port: 5432 },
  'mysql:': { engine: 'mysql', port: 3306 },
  'mariadb:': { engine: 'mariadb', port: 3306 },
}

/** What an address may begin with. */
export const databaseSchemes: readonly string[] = Object.keys(SCHEMES)

/** Reads the address of a database, of whichever kind; null where a part is missing. */
export function readDebeziumSource(address: string): DebeziumSource | null {
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  const scheme = SCHEMES[url.protocol]
  const user = decoded(url.username)
  const database = decoded(url.pathname.slice(1))
  const password = decoded(url.password)
  if (scheme === undefined || !url.hostname || !user || !database || password === null) return null
  const port = url.port === '' ? scheme.port : Number(url.port)
  return { engine: scheme.engine, host: url.hostname, port, user, database, password }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null // a lone percent sign
  }
}
