#!/bin/sh
# Starts PostgreSQL, Kafka and Kafka Connect with Debezium for the ivm example, registers ivm-outbox-connector and prints
# where to look. With docker where an engine answers, else (or with --without-docker) the same servers as processes of
# this machine, until Ctrl-C.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --without-docker ]; then
  exec node scripts/run.mjs infra
fi
if docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then
  docker compose --project-name commitpost --file infra/compose.yaml up --detach --wait
  exec node scripts/run.mjs infra register
fi
echo 'No docker engine with compose answers: starting the same without it.'
exec node scripts/run.mjs infra
