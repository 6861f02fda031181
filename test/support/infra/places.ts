import { sharedSettings } from '../kafka/settings.ts'

/** What the RFC of ivm calls its connector. */
export const CONNECTOR = 'ivm-outbox-connector'

/** What the topics of ivm begin with. */
export const TOPIC_PREFIX = 'ivm.events'

/** Where the servers of the example are. */
export interface Places {
  readonly databaseUrl: string
  readonly bootstrap: string
  readonly connectUrl: string
}

/** The ports that infra/compose.yaml gives them; without docker they are taken where they are free. */
export const PORTS = { postgres: 5432, kafka: 9092, connect: 8083 } as const

/** The account and the database of the example. */
export interface Account {
  readonly user: string
  readonly password: string
  readonly database: string
}

/** Reads infra/postgres.env. */
export async function readAccount(): Promise<Account> {
  const { user = '', password = '', db = '' } = await sharedSettings('postgres.env', 'POSTGRES_')
  return { user, password, database: db }
}

/** The address of the example's database on this machine. */
export function databaseUrl({ user, password, database }: Account, port: number): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
}
