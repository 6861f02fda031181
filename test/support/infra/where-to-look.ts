import { CONNECTOR, type Places, TOPIC_PREFIX } from './places.ts'

/** For a shell, between double quotes. */
const EXAMPLE =
  'insert into commitpost.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload) ' +
  `values ('${TOPIC_PREFIX}.raw_data', 'RawDataIngested', 'raw_data', 'tenant-1:product-123', jsonb_build_object('version', 1))`

/** What a person needs to use the servers. */
export function whereToLook(places: Places, { docker }: { readonly docker: boolean }): string {
  const pages = docker
    ? `Kafka UI           http://127.0.0.1:8080
Prometheus         http://127.0.0.1:9090 (scrapes: npx commitpost metrics --host 0.0.0.0)
Grafana            http://127.0.0.1:3000/d/commitpost-outbox
stop               docker compose --file infra/compose.yaml down --volumes`
    : `topics             what arrives in ${TOPIC_PREFIX}.* is printed below
stop               Ctrl-C`
  return `
PostgreSQL         psql ${places.databaseUrl}
Kafka              ${places.bootstrap}
connector status   curl ${places.connectUrl}/connectors/${CONNECTOR}/status
${pages}
an event           psql ${places.databaseUrl} -c "${EXAMPLE}"
`
}
