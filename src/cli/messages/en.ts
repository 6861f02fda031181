import { careEn } from './care-en.ts'
import { debeziumEn } from './debezium.ts'
import { exportEn } from './export-messages.ts'
import type { Messages } from './messages.ts'
import { proofEn } from './proof-en.ts'
import { redriveEn } from './redrive.ts'
import { retainEn } from './retain.ts'

/** English. */
export const en: Messages = {
  usage: {
    unknownCommand: (given, near) =>
      `There is no command "${given}".${near === null ? '' : ` Did you mean "commitpost ${near}"?`}`,
    incomplete: (group, candidates) =>
      group === ''
        ? 'A command is missing.'
        : `"commitpost ${group}" needs a command: ${candidates.map((name) => `"${name}"`).join(', ')}.`,
    unknownOption: (typed, near) =>
      `There is no option ${typed}.${near === null ? '' : ` Did you mean ${near}?`}`,
    needsValue: (name, placeholder) => `${name} needs a value: ${name} ${placeholder}`,
    takesNoValue: (name) => `${name} takes no value.`,
    isRequired: (name, summary) => `${name} is missing. ${summary.en}.`,
    mustBeShorter: (name, most, length) =>
      `${name} must be at most ${most} characters long, but is ${length}.`,
    mustBePerson: (name, policyPrefix) =>
      `${name} must be the name of a person: "${policyPrefix}" stands before those of policies.`,
    mustBeWholeNumber: (name, least, most, given) =>
      `${name} must be a whole number from ${least} to ${most}, not "${given}".`,
    mustBeRowNumber: (name, given) => `${name} must be a number as the list shows it, not "${given}".`,
    mustBeDuration: (name, given) => `${name} must be a length of time such as 20s or 5m, not "${given}".`,
    mustBeAtMost: (name, most, given) => `${name} must be at most ${most}, not "${given}".`,
    mustBeTime: (name, given) =>
      `${name} must be a time such as 2026-01-31, 2026-01-31T12:00Z or 24h (ago), not "${given}".`,
    mustBeOfYears: (name, first, last, given) =>
      `${name} must be a time of the years ${first} to ${last}, not "${given}".`,
    mustBeLater: (name, than) => `${name} must be later than ${than}.`,
    mustBeEventId: (name, given) => `${name} must be the id of an event (a UUID), not "${given}".`,
    mustBeDays: (name, least, most, given) =>
      `${name} must be a number of days from ${least}d to ${most}d, but is "${given}"`,
    mustBeRate: (name, most, given) =>
      `${name} must be a number per second such as 50/s, at most ${most}, not "${given}".`,
    mustBeShortName: (name, most) => `${name} must be at most ${most} bytes of UTF-8 long.`,
    mustNotContain: (name, text) => `${name} must not contain ${text}.`,
    mustBeOneOf: (name, choices, given) => `${name} must be ${choices.join(' or ')}, not "${given}".`,
    surplus: (text) => `"${text}" is one argument too many.`,
    noDatabase: 'No database is named. Give --database postgres://user@host:port/name, or set DATABASE_URL.',
    seeHelp: (command) => `See: commitpost ${command === '' ? '' : `${command} `}--help`,
  },
  help: {
    usage: 'Usage:',
    about:
      'Commitpost is a transactional outbox: events are written with your rows and delivered after the commit.',
    command: 'command',
    commands: 'Commands:',
    options: 'Options:',
    commonOptions: 'Common options:',
    exitCodes:
      'Exit codes: 0 done, 1 failed, 2 called wrongly, 3 a fault was found, 130 or 143 ended by SIGINT or SIGTERM.',
  },
  errors: {
    title: (code) => `Error (${code}):`,
    library: ({ message }) => message,
    unreachable: (address, reason) =>
      `The database at ${address} cannot be reached: ${reason}.\nIs the server running there, and do host and port agree?`,
    refused: (address, reason) => `The database at ${address} refused the connection: ${reason}.`,
    invalidUrl: 'The address of the database is not a URL such as postgres://user@host:5432/name.',
    driverMissing:
      'The PostgreSQL driver is not installed. Commitpost uses the one of your project: npm install pg',
    database: (code, reason) => `The database reports an error (SQLSTATE ${code}): ${reason}.`,
    rightMissing: (code, reason) =>
      `The role of this connection lacks a right that this needs (SQLSTATE ${code}): ${reason}.\n` +
      '"commitpost doctor" says which tables it cannot read, "commitpost roles sql" prints the rights that each role needs.',
    unexpected: (reason) => `Something unexpected went wrong: ${reason}\nWith --debug you see where.`,
    configNotFound: (path) => `There is no config file at ${path}, which --config names.`,
    noConfig: (directory, names) =>
      `There is no config file in ${directory}: none of ${names.join(', ')}. Make one of them, or name yours with --config.`,
    configFailed: (path, reason) => `The config file ${path} cannot be loaded: ${reason}`,
    configTypeScript: (path, node) =>
      `The config file ${path} is TypeScript, which Node ${node} cannot load as it is. Compile it to JavaScript and name that file with --config, ` +
      'or use Node 22.18 or later, which loads TypeScript without enums, namespaces and parameter properties.',
    configInvalid: (path, problems) =>
      `The config file ${path} cannot be used:\n${problems.map((problem) => `- ${problem}`).join('\n')}`,
    demoSchemaExists: (schema) =>
      `The demo wants a schema of its own, and "${schema}" exists. Leave --schema out, or name a new one.`,
  },
  migrate: {
    upToDate: (schema, version) => `Schema "${schema}" is at version ${version}: nothing to do.`,
    applied: (version, name) => `applied  ${String(version).padStart(4, '0')}  ${name}`,
    migrated: (schema, version) => `Schema "${schema}" is now at version ${version}.`,
    states: {
      missing: 'not installed',
      current: 'current',
      behind: 'behind',
      ahead: 'ahead of this program',
    },
    versions: (schema, found, needed) =>
      `Schema "${schema}": ${found === null ? 'no version' : `version ${found}`}; this program needs version ${needed}.`,
    columns: { version: 'VERSION', name: 'NAME', applied: 'APPLIED' },
    pending: 'pending',
    partitioned: (schema, restUntil) =>
      `The tables of schema "${schema}" are partitioned now. What was there, and all up to ${restUntil}, is in the rest.`,
    madeAhead: (everyDays, madeUntil) =>
      `Periods of ${everyDays} day(s), made up to ${madeUntil}. Workers make the next ones.`,
    advice: {
      missing: 'Install it with: commitpost migrate up',
      behind: 'Bring it up to date with: commitpost migrate up',
      ahead: 'Upgrade the package commitpost here.',
    },
  },
  status: {
    events: (count) => `Events: ${count}`,
    noSubscriptions: 'No subscription has been registered yet: a worker does that when it starts.',
    columns: {
      subscription: 'SUBSCRIPTION',
      state: 'STATE',
      order: 'ORDER',
      pending: 'PENDING',
      processing: 'PROCESSING',
      retrying: 'RETRYING',
      done: 'DONE',
      dead: 'DEAD',
      oldest: 'OLDEST PENDING',
      open: 'UNRESOLVED',
    },
    states: { joining: 'joining', active: 'active', retired: 'retired' },
    paused: 'paused',
    orders: { none: '-', aggregate: 'aggregate', total: 'total' },
    deadLettersWait: (count) => `Dead letters that wait for a person: ${count}. See: commitpost dlq list`,
    wasPaused: (subscription, operator) =>
      `Subscription "${subscription}" is paused, by ${operator}. What workers have in hand is finished.`,
    wasResumed: (subscription, operator) => `Subscription "${subscription}" goes on, resumed by ${operator}.`,
    wasRetired: (subscription, operator, discarded) =>
      `Subscription "${subscription}" is retired, by ${operator}. Deliveries that were open and are kept as resolved dead letters: ${discarded}.`,
    lettersStay: (count) =>
      `Dead letters of it that wait for a person: ${count}. They can be resolved, not retried.`,
    lockedStay: (count) =>
      `Deliveries of it that somebody has locked: ${count}. A worker sets them aside once they are let go.`,
    joiningWaits: (subscription, { pid, name }, age) =>
      `Subscription "${subscription}" is joining and waits for a transaction: ` +
      (pid === null ? `prepared as "${name}"` : `process ${pid}${name === null ? '' : ` ("${name}")`}`) +
      `${age === null ? '' : `, open for ${age}`}. It has joined once that one has ended.`,
  },
  deadLetters: {
    none: 'There are no such dead letters.',
    columns: {
      id: 'ID',
      failedAt: 'FAILED AT',
      subscription: 'SUBSCRIPTION',
      event: 'EVENT',
      aggregate: 'AGGREGATE',
      attempts: 'ATTEMPTS',
      error: 'ERROR',
      state: 'STATE',
    },
    open: 'open',
    closedBy: (resolution, operator) =>
      `${resolution === null ? 'resolved' : { retry: 'retried', resolve: 'resolved', amend: 'amended' }[resolution]} by ${operator}`,
    shown: (count, total) => `${count} of ${total}.`,
    nextPage: (before) => `More: add --before ${before}`,
    fields: {
      subscription: 'Subscription',
      event: 'Event',
      stream: 'Stream',
      aggregate: 'Aggregate',
      orderingKey: 'Ordering key',
      occurredAt: 'Occurred at',
      failedAt: 'Failed at',
      attempts: 'Attempts',
      error: 'Error',
      state: 'State',
      redrive: 'Automatic re-drive',
      note: 'Note',
      headers: 'Headers',
      payload: 'Payload',
      history: 'Failed attempts',
    },
    redriveNever: 'given up by its policy: it waits for a person',
    title: (id) => `Dead letter ${id}`,
    historyColumns: { attempt: '#', at: 'AT', worker: 'WORKER', took: 'TOOK', error: 'ERROR' },
    retried: (id, subscription, operator) =>
      `Dead letter ${id}: its event goes to "${subscription}" again. Recorded for ${operator}.`,
    seeWhy: (eventId) => `Where it stands, and what it waits for: commitpost why ${eventId}`,
    resolved: (id, operator) =>
      `Dead letter ${id} is resolved: its event will not be delivered again. Recorded for ${operator}.`,
    whatNext: (id) =>
      `Decide: commitpost dlq retry ${id} --operator NAME, or commitpost dlq resolve ${id} --operator NAME --note TEXT`,
    cannotRetry: {
      unmatched: (id) =>
        `No subscription takes it, so it cannot be retried. Subscribe and publish it again under a new id, or settle it: commitpost dlq resolve ${id} --operator NAME --note TEXT`,
      retired: (id) =>
        `Its subscription is retired, so it cannot be retried. Publish it again under a new id for another, or settle it: commitpost dlq resolve ${id} --operator NAME --note TEXT`,
    },
  },
  care: careEn,
  redrive: redriveEn,
  retain: retainEn,
  debezium: debeziumEn,
  proof: proofEn,
  exports: exportEn,
  worker: {
    started: (subscriptions, config) => `Worker started with ${config}: ${subscriptions.join(', ')}`,
    stopping: (signal) =>
      `${signal}: finishing what is in hand, then stopping. A second signal ends the process at once.`,
    stopped: 'Worker stopped.',
    outboxMissing: 'outbox must be what createOutbox made',
    subscriptionsMissing: 'subscriptions must be a list of at least one subscription',
    notAnObject: (kind) =>
      `its default export must be { outbox, subscriptions, options? } or a function that returns it, but is ${kind}`,
    optionsIgnored: (options) =>
      `it exports an object, so ${options.join(' and ')} would have no effect: export a function instead, ({ databaseUrl, schema }) => ({ … })`,
  },
  monitor: {
    started: (config) => `Monitor started with ${config}.`,
    stopped: 'Monitor stopped.',
    allIsWell: 'All is well: no rule has anything to say.',
    amiss: (count) => `Conditions that hold: ${count}.`,
    told: (told, untold) =>
      `Alerts sent: ${told}.${untold === 0 ? '' : ` Alerts that could not be sent: ${untold}.`}`,
    sinkFailed: (sink, error) => `${sink} did not take it: ${error}`,
  },
  metrics: {
    serving: (url) => `Metrics are served at ${url}. Ctrl-C ends it.`,
    stopped: 'Metrics are not served any more.',
    prefix: (name, given) =>
      `${name} must be 2 to 64 letters, digits, underscores or colons that begin with no digit and end with no underscore, not "${given}".`,
    cannotListen: (host, port, reason) =>
      `Metrics cannot be served at ${host}:${port}: ${reason}.\nName another place with --port and --host.`,
  },
  demo: {
    starting: (embedded) =>
      embedded ? 'Starting a PostgreSQL server of its own …' : 'Preparing the database …',
    intro: (facts) => [
      'Commitpost demo: a small shop',
      '',
      `Orders are placed, paid and shipped in business transactions, ${facts.rate} per second. Each writes its rows and`,
      'its events in one commit; one in twenty rolls back on purpose, and nobody must ever hear of its events.',
      'Three subscriptions get every event:',
      '  notifications  fast, in any order',
      '  ledger         in order per order, writes its own table, each event once',
      '  webhooks       flaky: one in five fails at first and is retried, a few fail for ever and become dead letters',
      '',
      `Database  ${facts.address}, schema ${facts.schema}${facts.embedded ? ' (temporary, gone at the end)' : ''}`,
      'Look around from another terminal:',
      `  ${facts.status}`,
      `  ${facts.deadLetters}`,
      `  ${facts.psql}`,
      facts.seconds === null
        ? 'Stop with Ctrl-C.'
        : `It ends by itself after ${facts.seconds}; Ctrl-C ends it sooner.`,
      '',
    ],
    progress: (counts) =>
      `published ${counts.published}  delivered ${counts.delivered}  retrying ${counts.retrying}  dead ${counts.dead}  ` +
      `latency p50 ${counts.p50} p99 ${counts.p99}`,
    draining: 'No more orders. Waiting until everything is delivered …',
    results: 'What became of every event:',
    columns: {
      subscription: 'SUBSCRIPTION',
      published: 'PUBLISHED',
      delivered: '= DELIVERED',
      pending: '+ PENDING',
      dead: '+ DEAD',
      holds: '',
    },
    all: 'all',
    equation: (subscriptions) => `published x ${subscriptions} subscriptions = delivered + pending + dead`,
    rolledBack: (transactions, deliveries) =>
      `Transactions rolled back on purpose: ${transactions}; events of theirs that were delivered: ${deliveries}.`,
    ledger: (entries, orders, violations) =>
      `Ledger: entries ${entries}, orders ${orders}, out of order ${violations}.`,
    latency: (p50, p99) => `Latency, published to handled, retries left out: p50 ${p50}, p99 ${p99}.`,
    deadLetters: (count) => `Dead letters: ${count}, kept with payload and every failed attempt.`,
    verdict: { good: 'It holds.', bad: 'It does NOT hold.' },
    kept: (schema, dropLine) => `The tables stay in schema "${schema}". Remove them with: ${dropLine}`,
  },
}
