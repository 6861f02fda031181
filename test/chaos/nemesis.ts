import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { sharedMs } from './clock.ts'
import type { PublisherMember, WorkerMember } from './fleet.ts'
import type { Journal } from './journal.ts'
import type { FaultName, Step } from './plan.ts'
import type { ChaosServer } from './server.ts'

/** What the nemesis can lay hands on. */
export interface Victims {
  readonly server: ChaosServer
  readonly schema: string
  readonly workers: readonly WorkerMember[]
  readonly publishers: readonly PublisherMember[]
}

/** Which workers may have lost their leases by it: these, all (null), or none, because nobody must have. */
type Harm = readonly string[] | null

/** How long to wait for the statement whose answer is to be lost. */
const TRAP_MS = 1_500
const AN_HOUR_MS = 3_600_000
const NOBODY: Harm = []

/** Does what the step says, to its end, and writes it down with its time. Says when it begins. */
export async function strike(
  victims: Victims,
  journal: Journal,
  step: Step,
  onStruck: (text: string) => void,
): Promise<void> {
  const { id, name, target } = step
  // What is done to one process waits for what is being done to it.
  let at = sharedMs()
  const begin = (): void => {
    at = sharedMs()
    onStruck(`${name} ${target}`)
  }
  const workers = await acts[name](victims, step, begin)
  journal.writeAt({ kind: 'fault', at, until: sharedMs(), id, name, workers })
}

/** Calls `begin` when it begins. */
type Act = (victims: Victims, step: Step, begin: () => void) => Promise<Harm>

const acts: Readonly<Record<FaultName, Act>> = {
  kill: onWorker(async (worker) => {
    await worker.kill()
    worker.start()
  }),
  stop: onWorker(async (worker, { lastsMs }) => {
    worker.signal('SIGSTOP')
    await sleep(lastsMs)
    worker.signal('SIGCONT')
  }),
  cut: onWorker(async ({ proxy }) => {
    proxy.cut()
  }),
  silence: onWorker(async ({ proxy }, { lastsMs }) => {
    proxy.swallow()
    await sleep(lastsMs)
    proxy.accept()
  }),
  loseReply: onWorker(async ({ proxy }) => {
    await Promise.race([proxy.loseNextReply(), sleep(TRAP_MS)])
    proxy.loseNothing()
  }),
  killPublisher: onPublisher(async (publisher) => {
    await publisher.kill()
    publisher.start()
  }),
  cutPublisher: onPublisher(async ({ proxy }) => {
    proxy.cut()
  }),
  loseCommitReply: onPublisher(async ({ proxy }) => {
    await Promise.race([proxy.loseNextCommit('reply'), sleep(TRAP_MS)])
    proxy.loseNothing()
  }),
  loseCommitRequest: onPublisher(async ({ proxy }) => {
    await Promise.race([proxy.loseNextCommit('request'), sleep(TRAP_MS)])
    proxy.loseNothing()
  }),
  terminateWorker: (victims, step, begin) =>
    onWorker((worker) => terminate(victims.server.url, worker.id))(victims, step, begin),
  terminateAll: async ({ server }, _step, begin) => {
    begin()
    await terminate(server.url, '%')
    return null
  },
  restart: async ({ server }, _step, begin) => {
    begin()
    await server.restart()
    return null
  },
  partition: async ({ workers }, { lastsMs }, begin) => {
    begin()
    for (const { proxy } of workers) proxy.swallow()
    await sleep(lastsMs)
    for (const { proxy } of workers) proxy.accept()
    return null
  },
  fillDisk: async ({ server }, { lastsMs }, begin) => {
    begin()
    await server.fillDisk()
    await sleep(lastsMs)
    await server.freeDisk()
    return null
  },
  holdSnapshot,
  skewClock,
  deploy,
}

function onWorker(act: (worker: WorkerMember, step: Step) => Promise<void>): Act {
  return ({ workers }, step, begin) => {
    const worker = workers[step.target] as WorkerMember
    return worker.alone(async () => {
      begin()
      const { id } = worker
      await act(worker, step)
      return [id]
    })
  }
}

function onPublisher(act: (publisher: PublisherMember) => Promise<void>): Act {
  return ({ publishers }, { target }, begin) => {
    const publisher = publishers[target] as PublisherMember
    return publisher.alone(async () => {
      begin()
      await act(publisher)
      return NOBODY
    })
  }
}

/** Ends the backends of one process, or of all. A server that is away just now has none. */
async function terminate(url: string, name: string): Promise<void> {
  await asking(url, (client) =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like $1 and backend_type = 'client backend' and pid <> pg_backend_pid()`,
      [name],
    ),
  )
}

/** An old snapshot stays open: vacuum can remove nothing, and dead rows pile up at the head. */
async function holdSnapshot(
  { server, schema }: Victims,
  { lastsMs }: Step,
  begin: () => void,
): Promise<Harm> {
  begin()
  await asking(server.url, async (client) => {
    await client.query('begin isolation level repeatable read')
    await client.query(`select count(*) from ${schema}.outbox_subscription`)
    await sleep(lastsMs)
    await client.query('rollback')
  })
  return NOBODY
}

/** A worker is stopped in peace, works for a while with a clock that is an hour off, and is set right again. */
async function skewClock({ workers }: Victims, step: Step, begin: () => void): Promise<Harm> {
  const { target, lastsMs, atMs } = step
  begin()
  const worker = workers[target] as WorkerMember
  await worker.replace({ skewMs: atMs % 2 === 0 ? AN_HOUR_MS : -AN_HOUR_MS })
  await sleep(lastsMs)
  await worker.replace({ skewMs: 0 })
  return NOBODY
}

/** The first one brings the new code, worker by worker. Later ones take half of the workers back to the old, for a while. */
async function deploy({ workers }: Victims, { lastsMs }: Step, begin: () => void): Promise<Harm> {
  begin()
  if (workers.every(({ code }) => code === 'new')) {
    const half = workers.slice(0, workers.length / 2)
    for (const worker of half) await worker.replace({ code: 'old' })
    await sleep(lastsMs)
  }
  for (const worker of workers) if (worker.code === 'old') await worker.replace({ code: 'new' })
  return NOBODY
}

/** Runs the work on a connection of the nemesis's own; that the server is away is nothing new to it. */
async function asking(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await work(client)
  } catch {
    // Another fault has taken the server, or this connection, away: then there is nothing to do to it.
  } finally {
    await client.end().catch(() => undefined)
  }
}
