import { setTimeout as sleep } from 'node:timers/promises'
import { PATIENCE_MS } from '../patience-ms.ts'

/** The settings of a connector by name, as Kafka Connect takes them. */
export type ConnectorConfig = Readonly<Record<string, string>>

/** How a connector is doing. */
export interface ConnectorStatus {
  /** `RUNNING`, `FAILED`, `UNASSIGNED`, …; null if there is no such connector, or nothing is known of it yet. */
  readonly connector: string | null
  readonly tasks: readonly string[]
  /** What a failed one said. */
  readonly trace: string
}

/** What a connector says of its settings. */
export interface Judged {
  /** Those that it does not know. */
  readonly unknown: readonly string[]
  /** What is wrong, by setting. Where the values alone are right it looks for the database. */
  readonly problems: Readonly<Record<string, readonly string[]>>
}

/** The connectors of a Kafka Connect. */
export interface Connectors {
  /** Whether Kafka Connect answers and has joined its group. */
  readonly answer: () => Promise<boolean>
  /** Adds a connector, or gives it another configuration, and waits until it and its task run. */
  register(name: string, config: ConnectorConfig): Promise<void>
  /** Waits until a connector and its task run; fails with what it says if it fails. */
  running(name: string): Promise<void>
  status(name: string): Promise<ConnectorStatus>
  /** Has the connector of that class judge these settings, as it does before it is registered. */
  validate(plugin: string, config: ConnectorConfig): Promise<Judged>
  /** Removes a connector. What it has made in the database stays. */
  unregister(name: string): Promise<void>
}

/** Speaks with the REST interface of a Kafka Connect. */
export function connectorsAt(url: string): Connectors {
  const status = (name: string): Promise<ConnectorStatus> => readStatus(url, name)
  const running = (name: string): Promise<void> => untilRunning(name, () => status(name))
  return {
    answer: async () => {
      const response = await fetch(`${url}/connectors`).catch(() => null)
      return response?.ok === true
    },
    register: async (name, config) => {
      await ask(`${url}/connectors/${name}/config`, 'PUT', config)
      await running(name)
    },
    running,
    status,
    validate: (plugin, config) => validate(url, plugin, config),
    unregister: (name) => ask(`${url}/connectors/${name}`, 'DELETE'),
  }
}

async function readStatus(url: string, name: string): Promise<ConnectorStatus> {
  const response = await fetch(`${url}/connectors/${name}/status`)
  if (!response.ok) return { connector: null, tasks: [], trace: '' }
  const { connector, tasks } = (await response.json()) as StatusAnswer
  const trace = [connector, ...tasks].map((part) => part.trace ?? '').join('')
  return { connector: connector.state, tasks: tasks.map((task) => task.state), trace }
}

interface StatusAnswer {
  readonly connector: { readonly state: string; readonly trace?: string }
  readonly tasks: readonly { readonly state: string; readonly trace?: string }[]
}

interface ValidateAnswer {
  readonly configs: readonly {
    readonly definition: { readonly name: string }
    readonly value: { readonly errors: readonly string[] } | null
  }[]
}

async function validate(url: string, plugin: string, config: ConnectorConfig): Promise<Judged> {
  const response = await fetch(`${url}/connector-plugins/${plugin}/config/validate`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    // Where it is registered, it gets its name from the address.
    body: JSON.stringify({ name: 'judged', ...config }),
  })
  const { configs } = (await response.json()) as ValidateAnswer
  const known = new Set(configs.map(({ definition }) => definition.name))
  // What is not known either is handed on to what keeps the history of the tables.
  const passedOn = 'schema.history.internal.kafka.'
  const unknown = Object.keys(config).filter((name) => !known.has(name) && !name.startsWith(passedOn))
  const errors = configs.map(({ definition, value }) => [definition.name, value?.errors ?? []] as const)
  return { unknown, problems: Object.fromEntries(errors.filter(([, of]) => of.length > 0)) }
}

async function untilRunning(name: string, look: () => Promise<ConnectorStatus>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const { connector, tasks, trace } = await look()
    const states = [connector, ...tasks]
    if (tasks.length > 0 && states.every((state) => state === 'RUNNING')) return
    if (states.includes('FAILED')) throw new Error(`The connector ${name} failed: ${trace}`)
    if (performance.now() > deadline) throw new Error(`The connector ${name} does not run: ${states.join()}`)
    await sleep(50)
  }
}

/** Kafka Connect answers 409 while its workers agree who does what: it is asked again. */
async function ask(url: string, method: string, body?: ConnectorConfig): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const response = await fetch(url, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (response.ok) return
    const said = `${response.status} ${await response.text()}`
    if (response.status !== 409 || performance.now() > deadline) throw new Error(`${method} ${url}: ${said}`)
    await sleep(100)
  }
}
