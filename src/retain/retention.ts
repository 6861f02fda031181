import type { Clock } from '../runtime/clock.ts'
import { NotFoundError } from '../runtime/errors.ts'
import type { Ids } from '../runtime/ids.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import {
  booleanProblem,
  functionProblem,
  isRecord,
  methodsProblem,
  refuseProblems,
  textProblem,
} from '../runtime/option-checks.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import type {
  RetentionRequest,
  RetentionRun,
  RetentionStore,
  RetentionWait,
} from '../store/retention-store.ts'
import { carryOut } from './carry-out.ts'
import type { ResolvedRetention } from './retention-options.ts'

/** Who lets events go by hand, and which. */
export interface RetainAct extends OperatorAct {
  /**
   * The policy of this stream or pattern, as the options name it.
   * @default all policies
   */
  readonly stream?: string
  /**
   * True counts what would go and changes nothing.
   * @default false
   */
  readonly dryRun?: boolean
  /** Told how far a run is, after every batch. */
  readonly onProgress?: (run: RetentionRun) => void
  /** Told what the run of a policy waits for, once until it goes on. */
  readonly onWait?: (policy: string, waitsFor: RetentionWait) => void
  /** Ends it after the batch under way: whoever runs it next goes on there. */
  readonly signal?: AbortSignal
}

/** What a run came to, or would come to. */
export interface RetentionReport {
  readonly policy: string
  readonly stream: string
  /** Null for a dry run. */
  readonly runId: string | null
  /** `interrupted`: the signal aborted; it goes on when it is run again. */
  readonly state: 'planned' | 'done' | 'interrupted'
  readonly deleted: number
  readonly archived: number
  readonly awaitingExport: number
  readonly unknownType: number
}

/** What becomes of events that everybody is done with. */
export interface Retention {
  /**
   * Carries the policies out now, or goes on with runs that were not finished. One at a time: where a worker does it
   * already, this waits for it.
   * @throws INVALID_STATE where the outbox has no policies.
   */
  run(act: RetainAct): Promise<readonly RetentionReport[]>
  /** The newest run of each policy; with a name all of that policy. Newest first. */
  status(policy?: string): Promise<readonly RetentionRun[]>
  /**
   * Makes the tables of the archives and lets workers carry out the policies, as the owner of the outbox's tables: with
   * the worker's role they may do neither. To be called again where a policy is to take more, or sooner.
   */
  prepare(): Promise<void>
}

/** What retention is made of. */
export interface RetentionParts {
  readonly store: RetentionStore
  /** Null where there are no policies. */
  readonly retention: ResolvedRetention | null
  readonly clock: Clock
  readonly ids: Pick<Ids, 'workerId'>
}

const ACT_NAMES = ['stream', 'dryRun', 'onProgress', 'onWait', 'signal'] as const

/** Retention of an outbox, with arguments checked before the database is asked. */
export function createRetention({ store, retention, clock, ids }: RetentionParts): Retention {
  return {
    run: async (act) => {
      refuseProblems('retention', runProblems(act))
      const { requests, pace } = chosen(retention, act.stream)
      const reports: RetentionReport[] = []
      for (const request of requests) {
        await prepareFor(store, request, act.dryRun === true)
        reports.push(
          act.dryRun === true
            ? await planned(store, request)
            : await ran({ store, clock, pace, stepper: ids.workerId() }, request, act),
        )
      }
      return reports
    },
    status: async (policy) => {
      refuseProblems('retention', [textProblem('the policy', policy)])
      return store.retentionRuns(policy ?? null)
    },
    prepare: async () => {
      for (const request of chosen(retention, undefined).requests) {
        await prepareFor(store, request, false)
        await store.allowPolicy(request)
      }
    },
  }
}

function runProblems(act: unknown): readonly (string | null)[] {
  if (!isRecord(act)) return actProblems(act)
  const { stream, dryRun, onProgress, onWait, signal } = act
  // Nothing is done by it, so nobody has to answer for it.
  const named = dryRun === true && act['operator'] === undefined ? { ...act, operator: 'nobody' } : act
  return [
    ...actProblems(named, ACT_NAMES),
    textProblem('stream', stream),
    booleanProblem('dryRun', dryRun),
    functionProblem('onProgress', onProgress),
    functionProblem('onWait', onWait),
    methodsProblem('signal', signal, ['addEventListener']),
  ]
}

function chosen(resolved: ResolvedRetention | null, stream: string | undefined): ResolvedRetention {
  if (resolved === null) {
    throw new RefusedError(
      'no-retention-policy',
      'There is no retention policy: give createOutbox the option `retention: { policies: [ … ] }`.',
    )
  }
  if (stream === undefined) return resolved
  const requests = resolved.requests.filter((request) => request.stream === stream)
  if (requests.length > 0) return { ...resolved, requests }
  const known = resolved.requests.map((request) => request.stream)
  const message = `There is no retention policy of stream "${stream}". There are: ${known.join(', ')}.`
  throw new NotFoundError('retention policy', stream, { message, known })
}

/** A dry run makes no table: what is not there has nothing in it. */
async function prepareFor(store: RetentionStore, { archive }: RetentionRequest, isDry: boolean) {
  if (archive !== null && !isDry) await store.ensureArchive(archive)
}

async function planned(store: RetentionStore, request: RetentionRequest): Promise<RetentionReport> {
  const { policy, stream, archive } = request
  const { events, awaitingExport, unknownType } = await store.previewRetention(request)
  const [deleted, archived] = archive === null ? [events, 0] : [0, events]
  return { policy, stream, runId: null, state: 'planned', deleted, archived, awaitingExport, unknownType }
}

async function ran(
  parts: Pick<Parameters<typeof carryOut>[0], 'store' | 'clock' | 'pace' | 'stepper'>,
  request: RetentionRequest,
  { operator, note, onProgress, onWait, signal = new AbortController().signal }: RetainAct,
): Promise<RetentionReport> {
  const { store } = parts
  const { policy, stream } = request
  const runId = (await store.beginRetention(request, null)) as string
  const read = async (): Promise<RetentionRun> => {
    const runs = await store.retentionRuns(policy)
    return runs.find(({ id }) => id === runId) as RetentionRun
  }
  let toldOf: RetentionWait | null = null
  await carryOut({
    ...parts,
    runId,
    act: { operator, note: note ?? null },
    signal,
    waitsForOthers: true,
    onStep: async ({ state, waitsFor }) => {
      if (state !== 'busy') onProgress?.(await read())
      if (waitsFor !== null && waitsFor !== toldOf) onWait?.(policy, waitsFor)
      toldOf = waitsFor
    },
  })
  const { deleted, archived, awaitingExport, unknownType, finishedAt } = await read()
  const state = finishedAt === null ? 'interrupted' : 'done'
  return { policy, stream, runId, state, deleted, archived, awaitingExport, unknownType }
}
