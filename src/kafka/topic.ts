import type { OutboxEvent } from '../event/event.ts'
import { isRecord, shown } from '../runtime/option-checks.ts'

/**
 * To which topic an event goes: a name, in which `{stream}`, `{aggregateType}` and `{type}` stand for the event's own
 * (`'{stream}'`, `'ivm.events.{aggregateType}'`, `'ledger-events'`); names by event type, as it is stored, with `'*'` for
 * all others; or a function.
 */
export type TopicRoute = string | Readonly<Record<string, string>> | ((event: OutboxEvent) => string)

/** Where events go unless somebody says otherwise: streams are named so that they can be topics unchanged. */
export const TOPIC_OF_STREAM = '{stream}'

const TOPIC_NAME = /^[A-Za-z0-9._-]{1,249}$/
const PLACEHOLDER = /\{(\w+)\}/g
const FILLERS: Readonly<Record<string, (event: OutboxEvent) => string>> = {
  stream: ({ stream }) => stream,
  aggregateType: ({ aggregateType }) => aggregateType,
  type: ({ type }) => type,
}

/** Makes the function that tells an event's topic; null where it has none. The caller has seen to the route. */
export function topicOf(route: TopicRoute): (event: OutboxEvent) => string | null {
  if (typeof route === 'function') return (event) => textOrNull(route(event))
  if (typeof route === 'string') return templateOf(route)
  const templates = new Map(Object.entries(route).map(([type, template]) => [type, templateOf(template)]))
  return (event) => (templates.get(event.type) ?? templates.get('*'))?.(event) ?? null
}

/** Whether Kafka takes this as the name of a topic. */
export function isTopicName(topic: string): boolean {
  return TOPIC_NAME.test(topic) && topic !== '.' && topic !== '..'
}

/** What is wrong with an optional route, each as a sentence. */
export function topicProblems(route: unknown): readonly string[] {
  if (route === undefined || typeof route === 'function') return []
  if (typeof route === 'string') return templateProblems('topic', route)
  if (!isRecord(route)) {
    return [`topic must be a name, names by event type, or a function, but is ${shown(route)}`]
  }
  if (Object.keys(route).length === 0) return ['topic must name at least one event type']
  return Object.entries(route).flatMap(([type, name]) => templateProblems(`topic of ${shown(type)}`, name))
}

function templateProblems(what: string, template: unknown): readonly string[] {
  if (typeof template !== 'string') return [`${what} must be text, but is ${shown(template)}`]
  const unknown = [...template.matchAll(PLACEHOLDER)]
    .map(([, name = '']) => name)
    .filter((name) => !Object.hasOwn(FILLERS, name))
  const known = Object.keys(FILLERS).map((name) => `{${name}}`)
  if (unknown.length > 0) return [`${what}: there is no {${unknown[0]}}; known are ${known.join(', ')}`]
  if (isTopicName(template.replaceAll(PLACEHOLDER, 'x'))) return []
  return [`${what} must be 1 to 249 letters, digits, dots, dashes or underscores, but is ${shown(template)}`]
}

/** Taken apart once: it is filled for every event. */
function templateOf(template: string): (event: OutboxEvent) => string {
  // Names of placeholders stand between the texts around them.
  const [before = '', ...rest] = template.split(PLACEHOLDER)
  const fillers = rest.flatMap((name, index) =>
    index % 2 === 0 ? [{ fill: FILLERS[name] ?? nothing, after: rest[index + 1] ?? '' }] : [],
  )
  return (event) => {
    let topic = before
    for (const { fill, after } of fillers) topic += fill(event) + after
    return topic
  }
}

function nothing(): string {
  return ''
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
