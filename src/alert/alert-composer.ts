import type { Masking } from '../event/masking.ts'
import { traceIdOf } from '../event/trace-context.ts'
import { type Formats, formatsIn } from '../runtime/formats.ts'
import { storableText } from '../runtime/text.ts'
import type { AlarmState, UntoldLetter, UntoldLetters, VanishedWorker } from '../store/alert-store.ts'
import type { Alert, AlertFact, AlertSeverity, ConditionRule } from './alert.ts'
import type { ResolvedAlertOptions } from './alert-options.ts'
import { type Condition, isOfLog, mostToCount, type Seen } from './conditions.ts'
import { shownError } from './hide-sensitive.ts'
import type { AlertTexts, FactName } from './texts.ts'
import { textsIn } from './texts-in.ts'

/** What alerts are made of. */
export interface ComposerParts {
  readonly options: Pick<ResolvedAlertOptions, 'language' | 'source' | 'rules'>
  /** What of an event may be quoted in an error. */
  readonly masking: Masking
  newId(): string
}

const SEVERITIES: Readonly<Record<ConditionRule, AlertSeverity>> = {
  unresolved: 'error',
  stuckPending: 'critical',
  unpublished: 'error',
  oldestPending: 'warning',
  dead: 'error',
  meanRetries: 'warning',
  eventRate: 'info',
  workerMissing: 'critical',
  streamGap: 'error',
}
const AGES: ReadonlySet<ConditionRule> = new Set(['oldestPending', 'workerMissing', 'streamGap'])
/** What a pause explains: more workers would not help. */
const WAITING: ReadonlySet<ConditionRule> = new Set(['stuckPending', 'unpublished', 'oldestPending'])
const MOST_LISTED = 10
const LONGEST_NAME = 200

/** Puts what was seen into words. Texts that came with events stand on one line, cut, and without controls. */
export class AlertComposer {
  readonly #parts: ComposerParts
  readonly #texts: AlertTexts
  readonly #formats: Formats

  constructor(parts: ComposerParts) {
    this.#parts = parts
    this.#texts = textsIn(parts.options.language)
    this.#formats = formatsIn(parts.options.language)
  }

  /** A condition holds. */
  alarm(condition: Condition, since: Date, at: Date): Alert {
    const { key, rule, subscription, value, threshold } = condition
    const title = isOfLog(condition) ? this.#texts.logUnread : this.#texts.conditions[rule]
    const words = {
      subscription: subscription?.name ?? '',
      value: this.#amount(rule, value),
      threshold: this.#amount(rule, threshold),
      reason: subscription?.log?.gap ?? '',
      stuckAfter: this.#formats.age(this.#parts.options.rules.stuckAfterMs / 1_000),
    }
    const facts = [
      ...(subscription === null ? [] : [this.#fact('subscription', subscription.name)]),
      this.#fact('value', words.value),
      this.#fact('threshold', words.threshold),
      this.#fact('since', since.toISOString()),
      ...(subscription === null ? [] : this.#standing(subscription)),
    ]
    return this.#alert({
      kind: 'alarm',
      rule,
      key,
      severity: SEVERITIES[rule],
      heading: this.#texts.headings.alarm,
      title: title(words),
      facts,
      advice: this.#adviceOn(rule, subscription),
      at,
      since,
      data: { value, threshold, ...(subscription === null ? {} : { subscription: subscription.name }) },
    })
  }

  /** A condition is over. */
  recovered({ key, rule }: AlarmState, since: Date, at: Date): Alert {
    const name = key.slice(rule.length + 1)
    const known = rule as ConditionRule
    return this.#alert({
      kind: 'recovered',
      rule: known,
      key,
      severity: 'info',
      heading: this.#texts.headings.recovered,
      title: this.#texts.recovered[known](name),
      facts: [
        ...(name === '' ? [] : [this.#fact('subscription', name)]),
        this.#fact('since', since.toISOString()),
      ],
      advice: null,
      at,
      since,
      data: name === '' ? {} : { subscription: name },
    })
  }

  /** New dead letters: one alert for each, or one for all where they are many. */
  letters({ ids, letters, groups }: UntoldLetters, at: Date): readonly Alert[] {
    if (groups.length === 0) return letters.map((letter) => this.#letter(letter, at))
    const listed = groups.slice(0, MOST_LISTED).map(({ subscription, eventType, errorCode, count }) => ({
      label: this.#name(this.#texts.group(subscription, eventType, errorCode)),
      value: this.#formats.count(count),
    }))
    return [
      this.#alert({
        kind: 'notice',
        rule: 'deadLetter',
        key: `deadLetter:${ids[0]}-${ids.at(-1)}`,
        severity: 'error',
        heading: this.#texts.headings.deadLetter,
        title: this.#texts.deadLetters(this.#formats.count(ids.length)),
        facts: this.#cut(listed, groups.length),
        advice: this.#texts.deadLettersAdvice,
        at,
        since: null,
        data: { count: ids.length, groups: groups.slice(0, MOST_LISTED) },
      }),
    ]
  }

  /** Workers that are gone. */
  vanished(workers: readonly VanishedWorker[], at: Date): readonly Alert[] {
    if (workers.length === 0) return []
    const listed = workers
      .slice(0, MOST_LISTED)
      .map(({ workerId, host, pid, lastSeenSeconds, subscriptions }) => ({
        label: this.#name(workerId),
        value: this.#name(
          this.#texts.vanishedWorker(`${host}:${pid}`, this.#formats.age(lastSeenSeconds), subscriptions),
        ),
      }))
    return [
      this.#alert({
        kind: 'notice',
        rule: 'workerMissing',
        key: `workerMissing:vanished:${workers[0]?.workerId}`,
        severity: 'error',
        heading: this.#texts.headings.alarm,
        title: this.#texts.vanished(workers.length),
        facts: this.#cut(listed, workers.length),
        advice: this.#texts.vanishedAdvice,
        at,
        since: null,
        data: { workers: workers.slice(0, MOST_LISTED) },
      }),
    ]
  }

  /** How everything stands. */
  report({ letters, figures, eventsPerSecond }: Seen, at: Date): Alert {
    const subscriptions = figures?.subscriptions ?? []
    const { oldest } = letters
    const types = letters.byType.slice(0, MOST_LISTED)
    const ageOf = (failedAt: Date): string => this.#formats.age((at.getTime() - failedAt.getTime()) / 1_000)
    const facts: readonly AlertFact[] = [
      this.#fact('unresolved', this.#count(letters.count)),
      ...types.map(({ eventType, count }) => ({
        label: `${this.#texts.facts.dead}, ${this.#name(eventType)}`,
        value: this.#count(count),
      })),
      ...(oldest === null
        ? []
        : [
            this.#fact(
              'oldest',
              this.#texts.oldestLetter(
                oldest.id,
                oldest.eventType,
                oldest.subscription,
                ageOf(oldest.failedAt),
              ),
            ),
          ]),
      ...subscriptions.map(({ name, pending, processing, dead, oldestPendingSeconds, pausedBy }) => ({
        label: this.#name(name),
        value: this.#texts.reportLine({
          pending: this.#count(pending),
          processing: this.#count(processing),
          dead: this.#count(dead),
          oldest: oldestPendingSeconds === null ? null : this.#formats.age(oldestPendingSeconds),
          pausedBy: pausedBy === null ? null : this.#name(pausedBy),
        }),
      })),
    ]
    return this.#alert({
      kind: 'report',
      rule: 'report',
      key: 'report',
      severity: 'info',
      heading: this.#texts.headings.report,
      title: this.#texts.report,
      facts,
      advice: null,
      at,
      since: null,
      data: { unresolved: letters.count, byType: letters.byType, oldest, subscriptions, eventsPerSecond },
    })
  }

  #letter(letter: UntoldLetter, at: Date): Alert {
    const { id, subscription, eventId, stream, eventType, aggregateType, aggregateId, undeliverable } = letter
    const error = shownError(letter, this.#parts.masking)
    const traceId = traceIdOf(letter.headers)
    const identity = { subscription, traceId, eventId, stream, eventType, aggregateType, aggregateId }
    const errorCode = this.#name(letter.errorCode)
    return this.#alert({
      kind: 'notice',
      rule: 'deadLetter',
      key: `deadLetter:${id}`,
      severity: 'error',
      heading: this.#texts.headings.deadLetter,
      title: this.#texts.deadLetter(
        this.#name(eventType),
        undeliverable === 'unmatched' ? null : this.#name(subscription),
      ),
      facts: [
        this.#fact('eventId', eventId),
        this.#fact('eventType', eventType),
        this.#fact('aggregate', `${aggregateType}#${aggregateId}`),
        this.#fact('subscription', subscription),
        this.#fact('retryCount', this.#formats.count(letter.retryCount)),
        { label: this.#texts.facts.error, value: `${errorCode}: ${error}` },
        this.#fact('failedAt', letter.failedAt.toISOString()),
        ...(traceId === null ? [] : [this.#fact('traceId', traceId)]),
      ],
      advice: this.#texts.deadLetterAdvice[undeliverable ?? 'deliverable'](id),
      at,
      since: null,
      data: {
        deadLetter: id,
        ...identity,
        errorCode,
        errorMessage: error,
        retryCount: letter.retryCount,
        failedAt: letter.failedAt.toISOString(),
      },
    })
  }

  #adviceOn(rule: ConditionRule, subscription: Condition['subscription']): string {
    const name = subscription?.name ?? ''
    const isOfPause = WAITING.has(rule) && (subscription?.pausedBy ?? null) !== null
    return isOfPause ? this.#texts.pausedAdvice(name) : this.#texts.advice[rule](name)
  }

  #standing({
    pending,
    processing,
    workers,
    pausedBy,
  }: NonNullable<Condition['subscription']>): readonly AlertFact[] {
    return [
      this.#fact('pending', this.#count(pending)),
      this.#fact('processing', this.#count(processing)),
      this.#fact('workers', this.#formats.count(workers)),
      ...(pausedBy === null ? [] : [this.#fact('pausedBy', pausedBy)]),
    ]
  }

  #alert(alert: Omit<Alert, 'id' | 'source'>): Alert {
    return { id: this.#parts.newId(), source: this.#parts.options.source, ...alert }
  }

  #fact(name: FactName, value: string): AlertFact {
    return { label: this.#texts.facts[name], value: this.#name(value) }
  }

  #cut(listed: readonly AlertFact[], total: number): readonly AlertFact[] {
    const left = total - listed.length
    return left <= 0
      ? listed
      : [...listed, { label: '…', value: this.#texts.more(this.#formats.count(left)) }]
  }

  #name(text: string): string {
    return storableText(text.replaceAll(/\s+/g, ' '), LONGEST_NAME)
  }

  #amount(rule: ConditionRule, value: number): string {
    if (AGES.has(rule)) return this.#formats.age(value / 1_000)
    if (rule === 'meanRetries') return String(Math.round(value * 100) / 100)
    return rule === 'eventRate' ? this.#formats.count(Math.round(value)) : this.#count(value)
  }

  #count(value: number): string {
    const most = mostToCount(this.#parts.options.rules)
    return value < most ? this.#formats.count(value) : this.#texts.moreThan(this.#formats.count(most - 1))
  }
}
