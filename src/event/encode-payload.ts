import { types } from 'node:util'
import { describeError } from '../runtime/text.ts'
import { unstorableText } from '../runtime/unstorable-text.ts'
import { type EventProblem, type EventProblemCode, InvalidEventError } from './errors.ts'
import { type JsonStep, stepPath } from './json-path.ts'

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
const CEILING_FACTOR = 4

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
  const walk: Walk = {
    text: '',
    problems: [],
    ancestors: [],
    at: null,
    longest: maxBytes * CEILING_FACTOR,
  }
  writeGuarded(walk, value)
  const bytes = Buffer.byteLength(walk.text)
  if (bytes > maxBytes) refuse(walk, sizeProblem(walk, bytes, maxBytes), null, 'PAYLOAD_TOO_LARGE')
  return walk.problems.length > 0 ? { ok: false, problems: walk.problems } : { ok: true, json: walk.text }
}

function sizeProblem(walk: Walk, bytes: number, maxBytes: number): string {
  const size = isTooLong(walk) ? `over ${walk.longest}` : String(bytes)
  return `is ${size} bytes; the limit is ${maxBytes} bytes (option maxPayloadBytes). Store it elsewhere and publish its address`
}

/** The state of one walk. The text is written in the same pass that checks it: a getter cannot answer twice. */
interface Walk {
  text: string
  readonly problems: EventProblem[]
  readonly ancestors: object[]
  at: JsonStep | null
  readonly longest: number
}

function writeGuarded(walk: Walk, value: unknown): void {
  try {
    const form = jsonForm(walk, value, null)
    if (form === undefined) refuse(walk, 'is undefined, which is no JSON; use null', null)
    else write(walk, form, null, 0)
  } catch (error) {
    // A getter, a proxy or toJSON threw. Whatever it was, the caller gets one kind of error, with the place.
    refuse(walk, `could not be read: ${describeError(error)}`, walk.at)
  }
}

function write(walk: Walk, value: unknown, at: JsonStep | null, depth: number): void {
  switch (typeof value) {
    case 'string':
      return writeString(walk, value, at)
    case 'number':
      return writeNumber(walk, value, at)
    case 'boolean':
      walk.text += value ? 'true' : 'false'
      return
    case 'object':
      if (value === null) walk.text += 'null'
      else writeContainer(walk, value, at, depth)
      return
    case 'bigint':
      return refuse(walk, 'is a bigint, which JSON cannot hold; send it as a string', at)
    case 'function':
    case 'symbol':
    case 'undefined':
    default:
      return refuse(walk, `is a ${typeof value}, which JSON cannot hold`, at)
  }
}

// Neither a control character nor a quote, a backslash or a surrogate: storable, and its own JSON. That is nearly all
// text, and asking here first makes encoding a third faster.
const PLAIN_TEXT = /^[\x20\x21\x23-\x5b\x5d-\ud7ff\ue000-\uffff]*$/

function writeString(walk: Walk, text: string, at: JsonStep | null): void {
  if (PLAIN_TEXT.test(text)) {
    walk.text += `"${text}"`
    return
  }
  const problem = unstorableText(text)
  if (problem !== null) return refuse(walk, problem, at)
  walk.text += JSON.stringify(text)
}

function writeNumber(walk: Walk, value: number, at: JsonStep | null): void {
  if (!Number.isFinite(value)) return refuse(walk, `is ${value}, which JSON cannot hold`, at)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return refuse(walk, 'is a number beyond 2^53 - 1, which JavaScript rounds; send it as a string', at)
  }
  walk.text += JSON.stringify(value)
}

function writeContainer(walk: Walk, value: object, at: JsonStep | null, depth: number): void {
  if (walk.ancestors.includes(value)) return refuse(walk, 'contains itself', at)
  if (depth >= DEEPEST) return refuse(walk, `is nested more than ${DEEPEST} levels deep`, at)
  const lossy = lossyKind(value)
  if (lossy !== null) return refuse(walk, `is ${lossy}`, at)
  walk.ancestors.push(value)
  if (Array.isArray(value)) writeArray(walk, value, at, depth + 1)
  else writeRecord(walk, value, at, depth + 1)
  walk.ancestors.pop()
}

function writeArray(walk: Walk, items: readonly unknown[], parent: JsonStep | null, depth: number): void {
  walk.text += '['
  for (let key = 0; key < items.length && !isExhausted(walk); key += 1) {
    if (key > 0) walk.text += ','
    const at = { parent, key }
    walk.at = at
    const form = jsonForm(walk, items[key], at)
    if (form === undefined) refuse(walk, 'is undefined inside an array, which JSON would turn into null', at)
    else write(walk, form, at, depth)
  }
  walk.text += ']'
}

function writeRecord(walk: Walk, record: object, parent: JsonStep | null, depth: number): void {
  let separator = '{'
  for (const key of Object.keys(record)) {
    if (isExhausted(walk)) break
    const at = { parent, key }
    walk.at = at
    const form = jsonForm(walk, Reflect.get(record, key), at)
    // As JSON.stringify does: an undefined property is an absent one.
    if (form === undefined) continue
    walk.text += separator
    separator = ','
    writeKey(walk, key, at)
    write(walk, form, at, depth)
  }
  walk.text += separator === '{' ? '{}' : '}'
}

function writeKey(walk: Walk, key: string, at: JsonStep): void {
  if (PLAIN_TEXT.test(key)) {
    walk.text += `"${key}":`
    return
  }
  const problem = unstorableText(key)
  if (problem !== null) refuse(walk, `has a key that ${problem}`, at)
  walk.text += `${JSON.stringify(key)}:`
}

/** What JSON.stringify would serialise in the value's place: the result of toJSON, or the primitive in a box. */
function jsonForm(walk: Walk, value: unknown, at: JsonStep | null): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'bigint')) return value
  walk.at = at
  // Date and Buffer have a toJSON that hides what is wrong with them: those are judged as they are.
  if (typeof value === 'object' && deceptiveKind(value) !== null) return value
  const toJson: unknown = Reflect.get(Object(value), 'toJSON')
  if (typeof toJson === 'function') return Reflect.apply(toJson, value, [at === null ? '' : String(at.key)])
  if (!isOrdinary(value) && types.isBoxedPrimitive(value)) return value.valueOf()
  return value
}

function deceptiveKind(value: object): string | null {
  if (isOrdinary(value)) return null
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return 'binary data; send it as base64 text'
  if (types.isDate(value) && Number.isNaN(value.getTime())) return 'an invalid Date'
  return null
}

/** What JSON.stringify would write as `{}` or as something nobody can read back, without a word. */
function lossyKind(value: object): string | null {
  if (isOrdinary(value)) return null
  const deceptive = deceptiveKind(value)
  if (deceptive !== null) return deceptive
  if (types.isMap(value) || types.isSet(value)) {
    return 'a Map or Set, which JSON would turn into {}; send an object or an array'
  }
  if (types.isNativeError(value)) return 'an Error, whose message JSON would drop; send the fields you need'
  if (Object.keys(value).length > 0) return null
  return 'an object of a class without own fields, which JSON would turn into {}; give it a toJSON method'
}

/**
 * Arrays and plain objects, which need none of the slower questions. Plain by the shape of the prototype chain, not by
 * identity: an object of another realm is plain too.
 */
function isOrdinary(value: unknown): boolean {
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

function isTooLong(walk: Walk): boolean {
  return walk.text.length > walk.longest
}

function isExhausted(walk: Walk): boolean {
  return isTooLong(walk) || walk.problems.length >= MOST_PROBLEMS
}

function refuse(
  walk: Walk,
  message: string,
  at: JsonStep | null,
  code: EventProblemCode = 'PAYLOAD_NOT_STORABLE',
): void {
  walk.problems.push({ code, path: stepPath(at), message })
}
