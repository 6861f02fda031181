import type { Group } from './row.ts'
import { alerts } from './rows/alerts.ts'
import { commandLine } from './rows/command-line.ts'
import { deliveries } from './rows/deliveries.ts'
import { batches, details, headers } from './rows/events.ts'
import { exported } from './rows/exports.ts'
import { backoffs, catalogues, functions } from './rows/functions.ts'
import { handlers } from './rows/handlers.ts'
import { kafkas } from './rows/kafka.ts'
import { careOfLetters } from './rows/letters.ts'
import { metrics } from './rows/metrics.ts'
import { names } from './rows/names.ts'
import { operators } from './rows/operators.ts'
import { outboxes, subscriptions, workers } from './rows/options.ts'
import { payloads } from './rows/payloads.ts'
import { proofs } from './rows/proof.ts'
import { redrives } from './rows/redrive.ts'
import { retentions } from './rows/retention.ts'
import { identifiers, inserts } from './rows/sql.ts'
import { thrown } from './rows/thrown.ts'
import { stores, transactions } from './rows/transactions.ts'

/** All hostile inputs, in the order of docs/hostile-inputs.md. */
export const groups: readonly Group[] = [
  payloads,
  names,
  details,
  headers,
  batches,
  transactions,
  stores,
  outboxes,
  subscriptions,
  workers,
  backoffs,
  catalogues,
  functions,
  operators,
  careOfLetters,
  redrives,
  retentions,
  alerts,
  metrics,
  kafkas,
  proofs,
  exported,
  identifiers,
  inserts,
  deliveries,
  thrown,
  handlers,
  commandLine,
]
