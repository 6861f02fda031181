import { isIPv6 } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import {
  isRecord,
  oneOfProblem,
  recordProblem,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../../runtime/option-checks.ts'
import type { BrokerAddress } from './requests.ts'
import type { SaslCredentials } from './sasl.ts'

/** How a relay's own producer reaches the brokers. The names are those of kafkajs. */
export interface RelayProducerOptions {
  /** Where to begin: `['kafka-1:9092', 'kafka-2:9092']`. */
  readonly brokers: readonly string[]
  /** @default 'commitpost' */
  readonly clientId?: string
  /**
   * TLS: true, or what `tls.connect` takes (`ca`, `cert`, `key` …).
   * @default false
   */
  readonly ssl?: boolean | ConnectionOptions
  /** Who this client is, where brokers ask. */
  readonly sasl?: SaslCredentials
  /**
   * How long a broker may take to answer a new connection, or who leads what, in milliseconds. Then the next is asked.
   * @default 5_000
   */
  readonly connectionTimeout?: number
}

const OPTION_NAMES: readonly (keyof RelayProducerOptions)[] = [
  'brokers',
  'clientId',
  'ssl',
  'sasl',
  'connectionTimeout',
]
const LONGEST_CONNECT_MS = 600_000
const ADDRESS = /^(.+):(\d{1,5})$/

/** Where that is; null where it is no `host:port`. */
export function addressOf(broker: string): BrokerAddress | null {
  const [, name = '', port = ''] = ADDRESS.exec(broker) ?? []
  const host = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  const isHost = host !== '' && (!host.includes(':') || isIPv6(host))
  return isHost && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : null
}

/** What is wrong with the options, each as a sentence. */
export function relayProducerProblems(
  options: Readonly<Record<string, unknown>>,
): readonly (string | null)[] {
  const { ssl, sasl } = options
  const isSsl = ssl === undefined || typeof ssl === 'boolean' || isRecord(ssl)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    brokersProblem(options['brokers']),
    textProblem('clientId', options['clientId']),
    isSsl ? null : `ssl must be true, false or an object, but is ${shown(ssl)}`,
    ...(sasl === undefined ? [] : saslProblems(sasl)),
    wholeNumberProblem('connectionTimeout', options['connectionTimeout'], 1, LONGEST_CONNECT_MS),
  ]
}

function brokersProblem(brokers: unknown): string | null {
  const wanted = "brokers must be a list of at least one 'host:port'"
  if (!Array.isArray(brokers) || brokers.length === 0) return `${wanted}, but is ${shown(brokers)}`
  const wrong: unknown = brokers.find((broker) => typeof broker !== 'string' || addressOf(broker) === null)
  return wrong === undefined ? null : `${wanted}, but has ${shown(wrong)}`
}

function saslProblems(sasl: unknown): readonly (string | null)[] {
  if (!isRecord(sasl)) return [recordProblem('sasl', sasl)]
  return [
    ...unknownOptionProblems(sasl, ['mechanism', 'username', 'password']),
    oneOfProblem('mechanism of sasl', sasl['mechanism'] ?? null, ['plain', 'scram-sha-256', 'scram-sha-512']),
    textProblem('username of sasl', sasl['username'] ?? null),
    // A password must not be shown, so it is not.
    typeof sasl['password'] === 'string' && sasl['password'] !== ''
      ? null
      : 'password of sasl must be text that is not empty',
  ]
}
