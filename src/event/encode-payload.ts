import { types } from 'node:util'
import { describeError } from '../runtime/text.ts'
import { type EventProblem, type EventProblemCode, InvalidEventError } from './errors.ts'
import { type JsonStep, stepPath } from './json-path.ts'
import { unstorableText } from './unstorable-text.ts'

/** One mebibyte of UTF-8. A larger thing belongs into a store of its own, with its address in the event. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576

/** How a payload is encoded. */
export interface EncodeOptions {
  /**
   * The largest payload, in bytes of UTF-8 JSON.
   * @default 1_048_576
   */
  readonly maxBytes?: number
}

/** JSON text that every supported database stores and gives back as the same value, or all that speaks against it. */
export type EncodeResult =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly problems: readonly EventProblem[] }

const DEEPEST = 200
const MOST_PROBLEMS = 20
// Beyond this many times the limit the walk stops: shared references can make a small graph endless text.
const CEILING_FACTOR = 16

/**
 * Serialises a payload, or throws an `InvalidEventError` that names each place JSON or a database would refuse or
 * silently change: NUL and broken text, numbers JavaScript cannot hold, Maps, binary data, cycles, sheer size.
 */
export function encodePayload(value: unknown, options: EncodeOptions = {}): string {
  const encoded = tryEncodePayload(value, options.maxBytes ?? DEFAULT_MAX_PAYLOAD_BYTES)
  if (!encoded.ok) throw new InvalidEventError('payload', encoded.problems)
  return encoded.json
}

/** As `encodePayload`, with the problems as a value. */
export function tryEncodePayload(value: unknown, maxBytes: number): EncodeResult {
  const walk: Walk = { problems: [], ancestors: new Set(), at: null, charsLeft: maxBytes * CEILING_FACTOR }
  const json = writeGuarded(walk, value)
  if (walk.charsLeft < 0) {
    refuse(
      walk,
      `is over ${maxBytes * CEILING_FACTOR} bytes; ${limitText(maxBytes)}`,
      null,
      'PAYLOAD_TOO_LARGE',
    )
  }
  if (walk.problems.length > 0) return { ok: false, problems: walk.problems }
  const bytes = Buffer.byteLength(json)
  if (bytes <= maxBytes) return { ok: true, json }
  refuse(walk, `is ${bytes} bytes; ${limitText(maxBytes)}`, null, 'PAYLOAD_TOO_LARGE')
  return { ok: false, problems: walk.problems }
}

function limitText(maxBytes: number): string {
  return `the limit is ${maxBytes} bytes (option maxPayloadBytes). Store it elsewhere and publish its address`
}

/** The state of one walk. The text is written in the same pass that checks it: a getter cannot answer twice. */
interface Walk {
  readonly problems: EventProblem[]
  readonly ancestors: Set<object>
  at: JsonStep | null
  charsLeft: number
}

function writeGuarded(walk: Walk, value: unknown): string {
  try {
    const form = jsonForm(walk, value, null)
    return form === undefined
      ? refuse(walk, 'is undefined, which is no JSON; use null', null)
      : write(walk, form, null, 0)
  } catch (error) {
    // A getter, a proxy or toJSON threw. Whatever it was, the caller gets one kind of error, with the place.
    return refuse(walk, `could not be read: ${describeError(error)}`, walk.at)
  }
}

function write(walk: Walk, value: unknown, at: JsonStep | null, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(walk, value, at)
    case 'number':
      return writeNumber(walk, value, at)
    case 'boolean':
      return spend(walk, value ? 'true' : 'false')
    case 'object':
      return value === null ? spend(walk, 'null') : writeContainer(walk, value, at, depth)
    case 'bigint':
      return refuse(walk, 'is a bigint, which JSON cannot hold; send it as a string', at)
    case 'function':
    case 'symbol':
    case 'undefined':
      return refuse(walk, `is a ${typeof value}, which JSON cannot hold`, at)
    default:
      return value satisfies never
  }
}

function writeString(walk: Walk, text: string, at: JsonStep | null): string {
  const problem = unstorableText(text)
  return problem === null ? spend(walk, JSON.stringify(text)) : refuse(walk, problem, at)
}

function writeNumber(walk: Walk, value: number, at: JsonStep | null): string {
  if (!Number.isFinite(value)) return refuse(walk, `is ${value}, which JSON cannot hold`, at)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return refuse(walk, 'is a number beyond 2^53 - 1, which JavaScript rounds; send it as a string', at)
  }
  return spend(walk, JSON.stringify(value))
}

function writeContainer(walk: Walk, value: object, at: JsonStep | null, depth: number): string {
  if (walk.ancestors.has(value)) return refuse(walk, 'contains itself', at)
  if (depth >= DEEPEST) return refuse(walk, `is nested more than ${DEEPEST} levels deep`, at)
  const lossy = lossyKind(value)
  if (lossy !== null) return refuse(walk, `is ${lossy}`, at)
  walk.ancestors.add(value)
  const text = Array.isArray(value)
    ? writeArray(walk, value, at, depth + 1)
    : writeRecord(walk, value, at, depth + 1)
  walk.ancestors.delete(value)
  return text
}

function writeArray(walk: Walk, items: readonly unknown[], parent: JsonStep | null, depth: number): string {
  const written: string[] = []
  for (let key = 0; key < items.length && !isExhausted(walk); key += 1) {
    const at = { parent, key }
    walk.at = at
    const form = jsonForm(walk, items[key], at)
    written.push(
      form === undefined
        ? refuse(walk, 'is undefined inside an array, which JSON would turn into null', at)
        : write(walk, form, at, depth),
    )
  }
  spend(walk, '[]')
  return `[${written.join(',')}]`
}

function writeRecord(walk: Walk, record: object, parent: JsonStep | null, depth: number): string {
  const written: string[] = []
  for (const key of Object.keys(record)) {
    if (isExhausted(walk)) break
    const at = { parent, key }
    walk.at = at
    const form = jsonForm(walk, Reflect.get(record, key), at)
    // As JSON.stringify does: an undefined property is an absent one.
    if (form === undefined) continue
    const keyProblem = unstorableText(key)
    if (keyProblem !== null) refuse(walk, `has a key that ${keyProblem}`, at)
    written.push(`${spend(walk, JSON.stringify(key))}:${write(walk, form, at, depth)}`)
  }
  spend(walk, '{}')
  return `{${written.join(',')}}`
}

/** What JSON.stringify would serialise in the value's place: the result of toJSON, or the primitive in a box. */
function jsonForm(walk: Walk, value: unknown, at: JsonStep | null): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'bigint')) return value
  walk.at = at
  // Date and Buffer have a toJSON that hides what is wrong with them: those are judged as they are.
  if (typeof value === 'object' && deceptiveKind(value) !== null) return value
  const toJson: unknown = Reflect.get(Object(value), 'toJSON')
  if (typeof toJson === 'function') return Reflect.apply(toJson, value, [at === null ? '' : String(at.key)])
  if (types.isBoxedPrimitive(value)) return value.valueOf()
  return value
}

function deceptiveKind(value: object): string | null {
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return 'binary data; send it as base64 text'
  if (types.isDate(value) && Number.isNaN(value.getTime())) return 'an invalid Date'
  return null
}

/** What JSON.stringify would write as `{}` or as something nobody can read back, without a word. */
function lossyKind(value: object): string | null {
  const deceptive = deceptiveKind(value)
  if (deceptive !== null) return deceptive
  if (types.isMap(value) || types.isSet(value)) {
    return 'a Map or Set, which JSON would turn into {}; send an object or an array'
  }
  if (types.isNativeError(value)) return 'an Error, whose message JSON would drop; send the fields you need'
  if (Array.isArray(value) || isPlainObject(value) || Object.keys(value).length > 0) return null
  return 'an object of a class without own fields, which JSON would turn into {}; give it a toJSON method'
}

// By the shape of the prototype chain, not by identity: plain objects of another realm are plain too.
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function spend(walk: Walk, text: string): string {
  walk.charsLeft -= text.length
  return text
}

function isExhausted(walk: Walk): boolean {
  return walk.charsLeft < 0 || walk.problems.length >= MOST_PROBLEMS
}

function refuse(
  walk: Walk,
  message: string,
  at: JsonStep | null,
  code: EventProblemCode = 'PAYLOAD_NOT_STORABLE',
): string {
  walk.problems.push({ code, path: stepPath(at), message })
  return spend(walk, 'null')
}
