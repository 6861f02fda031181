import { isRecord, refuseProblems, unknownOptionProblems } from '../../runtime/option-checks.ts'
import { storableText } from '../../runtime/text.ts'
import type { Alert, AlertFact, AlertSink } from '../alert.ts'
import { postJson, urlProblem } from './post-json.ts'

/** Where a Slack channel takes messages. */
export interface SlackSinkOptions {
  /** The address of an incoming webhook. It is a secret: it never appears in logs or errors. */
  readonly url: string
}

// The limits of Slack's blocks.
const LONGEST_HEADER = 150
const LONGEST_SECTION = 3_000
const LONGEST_FIELD = 2_000
const MOST_FIELDS = 10
const MOST_FACTS = 5 * MOST_FIELDS

const OPTION_NAMES: readonly (keyof SlackSinkOptions)[] = ['url']

/** Posts each alert to a Slack channel. */
export function slackSink(options: SlackSinkOptions): AlertSink {
  refuseProblems('slackSink', slackProblems(options))
  return {
    name: 'slack',
    send: (alert, signal) =>
      postJson({ url: options.url, body: JSON.stringify(slackMessage(alert)), signal }),
  }
}

/** The message: blocks for the channel, and a text for notifications. */
export function slackMessage(alert: Alert): object {
  const { heading, title, facts, advice, source, at } = alert
  const fields = shownFacts(facts).map(({ label, value }) =>
    markdown(`*${escaped(label)}*\n${escaped(value)}`, LONGEST_FIELD),
  )
  return {
    text: cut(escaped(`${heading} [${source}] ${title}`), LONGEST_SECTION),
    blocks: [
      {
        type: 'header',
        text: { type: 'plain_text', text: cut(`${heading} · ${source}`, LONGEST_HEADER), emoji: false },
      },
      { type: 'section', text: markdown(escaped(title), LONGEST_SECTION) },
      ...chunks(fields, MOST_FIELDS).map((part) => ({ type: 'section', fields: part })),
      ...(advice === null ? [] : [{ type: 'section', text: markdown(escaped(advice), LONGEST_SECTION) }]),
      { type: 'context', elements: [markdown(escaped(`${alert.key} · ${at.toISOString()}`), LONGEST_FIELD)] },
    ],
  }
}

/** As many as a person reads on, and how many more there are, in any language. */
function shownFacts(facts: readonly AlertFact[]): readonly AlertFact[] {
  if (facts.length <= MOST_FACTS) return facts
  const shown = facts.slice(0, MOST_FACTS - 1)
  return [...shown, { label: '…', value: `+${facts.length - shown.length}` }]
}

// What was given is not shown: it may be the address itself.
function slackProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return ['the argument must be an object: { url }']
  return [urlProblem('url', options['url']), ...unknownOptionProblems(options, OPTION_NAMES)]
}

function markdown(text: string, longest: number): object {
  return { type: 'mrkdwn', text: cut(text, longest), verbatim: true }
}

/** The three characters that mean something to Slack; with `verbatim` it makes no links of names and addresses. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function cut(text: string, longest: number): string {
  return storableText(text, longest)
}

function chunks<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) =>
    items.slice(n * size, (n + 1) * size),
  )
}
