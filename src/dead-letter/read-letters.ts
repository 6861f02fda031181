import type { JsonObject, JsonValue } from '../event/event.ts'
import type { Masking } from '../event/masking.ts'
import { NotFoundError } from '../runtime/errors.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import { isRecord, recordProblem, refuseProblems, unknownOptionProblems } from '../runtime/option-checks.ts'
import type {
  BlockedKey,
  BlockedKeyQuery,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroupQuery,
  DeadLetterQuery,
  DeadLetterStore,
} from '../store/dead-letter-store.ts'
import { errorPattern } from './error-pattern.ts'
import { exportDeadLetters } from './export.ts'
import { type LetterMask, maskedLetter, shownAsIs } from './masked-letter.ts'
import { blockedProblems, filterProblems, idProblems } from './query-problems.ts'

/** How dead letters are shown. */
export interface DeadLetterView {
  /**
   * Shows everything, also what is sensitive, to somebody who must see it. Who and why is recorded in the operator log
   * before anything is shown.
   * @default nobody: what is sensitive is masked
   */
  readonly reveal?: OperatorAct
}

const VIEW_OPTIONS: readonly (keyof DeadLetterView)[] = ['reveal']

function viewProblems(view: unknown): readonly (string | null)[] {
  if (!isRecord(view)) return [recordProblem('the view', view)]
  const { reveal } = view
  return [
    ...unknownOptionProblems(view, VIEW_OPTIONS),
    ...(reveal === undefined ? [] : actProblems(reveal).map((problem) => problem && `reveal: ${problem}`)),
  ]
}

/**
 * Reads dead letters. They are masked: of payloads and error messages, everything that the
 * catalogue hides from the dashboard (`export`: from exports), unless an act to `reveal` says otherwise.
 */
export interface ReadDeadLetters {
  /** Newest first, those that wait for a person unless asked otherwise. */
  list(query?: DeadLetterQuery, view?: DeadLetterView): Promise<readonly DeadLetter[]>
  count(filter?: DeadLetterFilter): Promise<number>
  /** What is wrong with how many: dead letters by what their errors have in common, the largest groups first. */
  group(query?: DeadLetterGroupQuery): Promise<readonly DeadLetterGroup[]>
  /** @throws NotFoundError when there is none with this id. */
  show(id: string, view?: DeadLetterView): Promise<DeadLetter>
  /** All of them, newest first, read page by page. */
  export(filter?: DeadLetterFilter, view?: DeadLetterView): AsyncIterable<DeadLetter>
  /** The keys of ordered subscriptions whose events wait for a decision, longest first. */
  blocked(query?: BlockedKeyQuery): Promise<readonly BlockedKey[]>
}

/** What only reads dead letters, with arguments checked before the database is asked. */
export function readDeadLetters(store: DeadLetterStore, masking: Masking): ReadDeadLetters {
  const onDashboard: LetterMask = (letter) => maskedLetter(letter, masking, 'dashboard')
  return {
    list: async (query = {}, view = {}) => {
      refuseProblems('listing dead letters', [
        ...filterProblems(query, ['before', 'limit']),
        ...viewProblems(view),
      ])
      const found = await store.listDeadLetters(query)
      if (view.reveal === undefined) return found.map(onDashboard)
      await record(store, view.reveal, { list: plainFilter(query) }, found.length)
      return found
    },
    count: async (filter = {}) => {
      refuseProblems('counting dead letters', filterProblems(filter))
      return store.countDeadLetters(filter)
    },
    group: async (query = {}) => {
      refuseProblems('grouping dead letters', filterProblems(query, ['limit']))
      const groups = await store.groupDeadLetters(query)
      return inTurn(groups, (group) => maskedGroup(store, masking, group))
    },
    show: async (id, view = {}) => {
      refuseProblems('a dead letter', [...idProblems(id), ...viewProblems(view)])
      const found = await findLetter(store, id)
      if (view.reveal === undefined) return onDashboard(found)
      await record(store, view.reveal, { deadLetter: id }, 1)
      return found
    },
    export: (filter = {}, view = {}) => {
      refuseProblems('exporting dead letters', [...filterProblems(filter), ...viewProblems(view)])
      return exported(store, filter, view, masking)
    },
    blocked: async (query = {}) => {
      refuseProblems('listing blocked keys', blockedProblems(query))
      const keys = await store.blockedKeys(query)
      return inTurn(keys, (key) => maskedKey(store, masking, key))
    },
  }
}

/** The dead letter as it is stored. @throws NotFoundError when there is none with this id. */
export async function findLetter(store: DeadLetterStore, id: string): Promise<DeadLetter> {
  const found = await store.findDeadLetter(id)
  if (found === null) throw new NotFoundError('dead letter', id)
  return found
}

async function* exported(
  store: DeadLetterStore,
  filter: DeadLetterFilter,
  { reveal }: DeadLetterView,
  masking: Masking,
): AsyncGenerator<DeadLetter, void, undefined> {
  if (reveal !== undefined) {
    const affected = await store.countDeadLetters(filter)
    await record(store, reveal, { export: plainFilter(filter) }, affected)
  }
  const mask: LetterMask =
    reveal === undefined ? (letter) => maskedLetter(letter, masking, 'export') : shownAsIs
  yield* exportDeadLetters(store, filter, mask)
}

async function record(
  store: DeadLetterStore,
  { operator, note }: OperatorAct,
  target: JsonObject,
  affected: number,
): Promise<void> {
  await store.recordReveal({ operator, note: note ?? null, target, affected })
}

/** As JSON has it: times as texts, and without what was not given. */
function plainFilter(filter: DeadLetterFilter): JsonValue {
  return JSON.parse(JSON.stringify(filter)) as JsonValue
}

// Neither has a payload of its own: that of its dead letter says what in the message is a hidden value. One that was
// purged in this moment leaves nobody who could tell.
async function maskedGroup(
  store: DeadLetterStore,
  masking: Masking,
  group: DeadLetterGroup,
): Promise<DeadLetterGroup> {
  const isOpen = group.eventTypes.every((type) => masking.hidden(type, 'dashboard')?.length === 0)
  const sample = isOpen ? null : await store.findDeadLetter(group.sampleId)
  if (sample === null) return isOpen ? group : { ...group, pattern: '' }
  const { errorMessage } = maskedLetter(sample, masking, 'dashboard')
  // Masked first: in the pattern a value would not be found again, as its numbers are taken out.
  return errorMessage === sample.errorMessage ? group : { ...group, pattern: errorPattern(errorMessage) }
}

async function maskedKey(store: DeadLetterStore, masking: Masking, key: BlockedKey): Promise<BlockedKey> {
  if (masking.hidden(key.eventType, 'dashboard')?.length === 0) return key
  const letter = await store.findDeadLetter(key.deadLetterId)
  const errorMessage = letter === null ? '' : maskedLetter(letter, masking, 'dashboard').errorMessage
  return { ...key, errorMessage }
}

async function inTurn<Item>(
  items: readonly Item[],
  change: (item: Item) => Promise<Item>,
): Promise<readonly Item[]> {
  const changed: Item[] = []
  for (const item of items) changed.push(await change(item))
  return changed
}
