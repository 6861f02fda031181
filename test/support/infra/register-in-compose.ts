import { databaseUrl, type Places, PORTS, readAccount } from './places.ts'
import { prepare } from './prepare.ts'

/** The tables and the connector, in what infra/compose.yaml has started on this machine. */
export async function registerInCompose(): Promise<Places> {
  const account = await readAccount()
  const places = {
    databaseUrl: databaseUrl(account, PORTS.postgres),
    bootstrap: `127.0.0.1:${PORTS.kafka}`,
    connectUrl: `http://127.0.0.1:${PORTS.connect}`,
  }
  await prepare(places, account, 'postgres', PORTS.postgres)
  return places
}
