import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { FaultProxy } from '../support/fault-proxy.ts'
import { sharedMs } from './clock.ts'
import type { PublisherMember, WorkerMember } from './fleet.ts'
import type { Journal } from './journal.ts'
import type { FaultName, Step } from './plan.ts'
import type { ChaosServer } from './server.ts'
import { isOver } from './within.ts'

/** What the nemesis can lay hands on. */
export interface Victims {
  readonly server: ChaosServer
  readonly schema: string
  readonly workers: readonly WorkerMember[]
  readonly publishers: readonly PublisherMember[]
}

/** Which workers may have lost their leases by it: these, all (null), or none, because nobody must have; or a miss. */
type Blow = readonly string[] | null | typeof MISSED

/** Nothing was there to be broken: that is no fault, and explains nothing. */
const MISSED = 'missed'
/** How long to wait for something to break: a process that starts has no connections, and one whose server is away sends nothing. */
const AIM_MS = 30_000
const AIM_AGAIN_MS = 50
const AN_HOUR_MS = 3_600_000
const NOBODY: readonly string[] = []

/**
 * Does what the step says, to its end, and writes it down with its time. Says when it begins. Whether it struck: what found
 * nothing to break is written down as no fault.
 */
export async function strike(
  victims: Victims,
  journal: Journal,
  step: Step,
  onStruck: (text: string) => void,
): Promise<boolean> {
  const { id, name, target } = step
  // What is done to one process waits for what is being done to it.
  let at: number | null = null
  const begin = (): void => {
    if (at === null) onStruck(`${name} ${target}`)
    at = sharedMs()
  }
  const workers = await acts[name](victims, step, begin)
  if (workers === MISSED) onStruck(`${name} ${target} missed`)
  else journal.writeAt({ kind: 'fault', at: at ?? sharedMs(), until: sharedMs(), id, name, workers })
  return workers !== MISSED
}

/** Calls `begin` when it begins, and again where it begins anew because nothing was broken so far. */
type Act = (victims: Victims, step: Step, begin: () => void) => Promise<Blow>

/** What is done to one process; whether anything came of it. */
type Deed<Victim> = (victim: Victim, step: Step, begin: () => void) => Promise<boolean>

const acts: Readonly<Record<FaultName, Act>> = {
  kill: onWorker(killed),
  stop: onWorker(async (worker, { lastsMs }, begin) => {
    begin()
    const isStopped = worker.signal('SIGSTOP')
    await sleep(lastsMs)
    worker.signal('SIGCONT')
    return isStopped
  }),
  cut: onWorker(cut),
  silence: onWorker(({ proxy }, { lastsMs }, begin) => silenced([proxy], lastsMs, begin)),
  loseReply: onWorker(lost((proxy) => proxy.loseNextReply())),
  killPublisher: onPublisher(killed),
  cutPublisher: onPublisher(cut),
  loseCommitReply: onPublisher(lost((proxy) => proxy.loseNextCommit('reply'))),
  loseCommitRequest: onPublisher(lost((proxy) => proxy.loseNextCommit('request'))),
  terminateWorker: (victims, step, begin) =>
    onWorker((worker) => terminated(victims.server.url, worker.id, begin))(victims, step, begin),
  terminateAll: async ({ server }, _step, begin) =>
    (await terminated(server.url, '%', begin)) ? null : MISSED,
  restart: async ({ server }, _step, begin) => {
    begin()
    return (await server.restart()) ? null : MISSED
  },
  partition: async ({ workers }, { lastsMs }, begin) => {
    const proxies = workers.map(({ proxy }) => proxy)
    return (await silenced(proxies, lastsMs, begin)) ? null : MISSED
  },
  fillDisk: async ({ server }, { lastsMs }, begin) => {
    begin()
    const isFull = await server.fillDisk()
    await sleep(lastsMs)
    await server.freeDisk()
    return isFull ? null : MISSED
  },
  holdSnapshot,
  skewClock,
  deploy,
}

function onWorker(deed: Deed<WorkerMember>): Act {
  return ({ workers }, step, begin) => {
    const worker = workers[step.target] as WorkerMember
    return worker.alone(async () => {
      const { id } = worker
      return (await deed(worker, step, begin)) ? [id] : MISSED
    })
  }
}

function onPublisher(deed: Deed<PublisherMember>): Act {
  return ({ publishers }, step, begin) => {
    const publisher = publishers[step.target] as PublisherMember
    return publisher.alone(async () => ((await deed(publisher, step, begin)) ? NOBODY : MISSED))
  }
}

async function killed(
  victim: WorkerMember | PublisherMember,
  _step: Step,
  begin: () => void,
): Promise<boolean> {
  begin()
  await victim.kill()
  victim.start()
  return true
}

function cut({ proxy }: WorkerMember | PublisherMember, _step: Step, begin: () => void): Promise<boolean> {
  return aiming(async () => {
    begin()
    return proxy.cut() > 0
  })
}

/** It begins when something is lost: while that is waited for, nothing is broken. */
function lost(next: (proxy: FaultProxy) => Promise<void>): Deed<WorkerMember | PublisherMember> {
  return async ({ proxy }, _step, begin) => {
    const isLost = await isOver(next(proxy), AIM_MS)
    if (isLost) begin()
    else proxy.loseNothing()
    return isLost
  }
}

/** Connections that were open, or asked for meanwhile, met with silence. */
async function silenced(
  proxies: readonly FaultProxy[],
  lastsMs: number,
  begin: () => void,
): Promise<boolean> {
  // A process that has only just begun has no connection that could fall silent.
  await aiming(() => Promise.resolve(proxies.some(({ open }) => open > 0)))
  begin()
  const before = proxies.map(({ open, unanswered }) => ({ open, unanswered }))
  for (const proxy of proxies) proxy.swallow()
  await sleep(lastsMs)
  const isHeard = proxies.some(
    ({ unanswered }, n) => (before[n]?.open ?? 0) > 0 || unanswered > (before[n]?.unanswered ?? 0),
  )
  for (const proxy of proxies) proxy.accept()
  return isHeard
}

/** Ends the backends of one process, or of all. */
function terminated(url: string, name: string, begin: () => void): Promise<boolean> {
  return aiming(() => {
    begin()
    return asking(url, async (client) => {
      const { rowCount } = await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where application_name like $1 and backend_type = 'client backend' and pid <> pg_backend_pid()`,
        [name],
      )
      return rowCount !== null && rowCount > 0
    })
  })
}

/** An old snapshot stays open: vacuum can remove nothing, and dead rows pile up at the head. */
async function holdSnapshot(
  { server, schema }: Victims,
  { lastsMs }: Step,
  begin: () => void,
): Promise<Blow> {
  const isHeld = await aiming(() => {
    begin()
    return asking(server.url, async (client) => {
      await client.query('begin isolation level repeatable read')
      await client.query(`select count(*) from ${schema}.outbox_subscription`)
      await sleep(lastsMs)
      await client.query('rollback')
      return true
    })
  })
  return isHeld ? NOBODY : MISSED
}

/** A worker is stopped in peace, works for a while with a clock that is an hour off, and is set right again. */
async function skewClock({ workers }: Victims, step: Step, begin: () => void): Promise<Blow> {
  const { target, lastsMs, atMs } = step
  begin()
  const worker = workers[target] as WorkerMember
  await worker.replace({ skewMs: atMs % 2 === 0 ? AN_HOUR_MS : -AN_HOUR_MS })
  await sleep(lastsMs)
  await worker.replace({ skewMs: 0 })
  return NOBODY
}

/** The first one brings the new code, worker by worker. Later ones take half of the workers back to the old, for a while. */
async function deploy({ workers }: Victims, { lastsMs }: Step, begin: () => void): Promise<Blow> {
  begin()
  if (workers.every(({ code }) => code === 'new')) {
    const half = workers.slice(0, workers.length / 2)
    for (const worker of half) await worker.replace({ code: 'old' })
    await sleep(lastsMs)
  }
  for (const worker of workers) if (worker.code === 'old') await worker.replace({ code: 'new' })
  return NOBODY
}

/** Tries until there is something to break, or for as long as anybody would wait for it. */
async function aiming(attempt: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = sharedMs() + AIM_MS; ; await sleep(AIM_AGAIN_MS)) {
    if (await attempt()) return true
    if (sharedMs() > deadline) return false
  }
}

/** Runs the work on a connection of the nemesis's own; false where another fault has taken the server, or this connection, away. */
async function asking(url: string, work: (client: pg.Client) => Promise<boolean>): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}
