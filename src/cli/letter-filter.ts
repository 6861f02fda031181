import {
  DEAD_LETTER_REASONS,
  type DeadLetterFilter,
  type DeadLetterReason,
} from '../store/dead-letter-store.ts'
import type { Invocation } from './command.ts'
import { choice, flag, type OptionSpec, text, type ValuesOf } from './option-spec.ts'
import { pointInTime, refuseReversed } from './point-in-time.ts'

/** The options that say which dead letters are meant. */
export interface FilterOptions extends Readonly<Record<string, OptionSpec<unknown>>> {
  readonly subscription: OptionSpec<string | undefined>
  readonly stream: OptionSpec<string | undefined>
  readonly type: OptionSpec<string | undefined>
  readonly reason: OptionSpec<DeadLetterReason | undefined>
  readonly error: OptionSpec<string | undefined>
  readonly text: OptionSpec<string | undefined>
  readonly fingerprint: OptionSpec<string | undefined>
  readonly 'aggregate-type': OptionSpec<string | undefined>
  readonly 'aggregate-id': OptionSpec<string | undefined>
  readonly since: OptionSpec<Date | undefined>
  readonly until: OptionSpec<Date | undefined>
  readonly resolved: OptionSpec<boolean>
  readonly all: OptionSpec<boolean>
}

const REASONS = Object.keys(DEAD_LETTER_REASONS) as readonly DeadLetterReason[]

/** How they are read and explained. */
export const filterOptions: FilterOptions = {
  subscription: text('NAME', { en: 'Only those of this subscription', ko: '이 구독의 것만' }),
  stream: text('STREAM', { en: 'Only events of this stream', ko: '이 스트림의 이벤트만' }),
  type: text('TYPE', { en: 'Only events of this type', ko: '이 유형의 이벤트만' }),
  reason: choice('REASON', REASONS, {
    en: 'Only those that are dead for this reason, such as RETRIES_EXHAUSTED',
    ko: 'RETRIES_EXHAUSTED 같은 이 사유의 것만',
  }),
  error: text('CODE', { en: 'Only those with this error code', ko: '이 오류 코드만' }),
  text: text('TEXT', {
    en: 'Only those with this text in the error message, in any case',
    ko: '오류 메시지에 이 글자가 있는 것만(대소문자 구분 없음)',
  }),
  fingerprint: text('FINGERPRINT', {
    en: 'Only those of this group: see dlq group',
    ko: '이 묶음의 것만(dlq group 참고)',
  }),
  'aggregate-type': text('TYPE', {
    en: 'Only events of aggregates of this type',
    ko: '이 애그리거트 유형의 이벤트만',
  }),
  'aggregate-id': text('ID', { en: 'Only events of this aggregate', ko: '이 애그리거트의 이벤트만' }),
  since: pointInTime('TIME', {
    en: 'Failed at this time or later: 2026-11-16T09:30:00Z, or 24h for 24 hours ago',
    ko: '이 시각부터 실패한 것만: 2026-11-16T09:30:00Z, 또는 24시간 전이면 24h',
  }),
  until: pointInTime('TIME', { en: 'Failed before this time', ko: '이 시각 전에 실패한 것만' }),
  resolved: flag({ en: 'Those that were resolved, instead of the open ones', ko: '미해결 대신 해결된 것만' }),
  all: flag({ en: 'Open and resolved ones', ko: '미해결과 해결됨 모두' }),
}

/** What the options mean for the library. @throws CliError of code USAGE where nothing can fit them. */
export function filterOf(
  values: ValuesOf<FilterOptions>,
  commandName: string,
  invocation: Pick<Invocation<unknown>, 'messages'>,
): DeadLetterFilter {
  const { since: from, until: to } = values
  refuseReversed({ from, to, names: ['--since', '--until'] }, commandName, invocation)
  const given = {
    subscription: values.subscription,
    stream: values.stream,
    eventType: values.type,
    reason: values.reason,
    errorCode: values.error,
    text: values.text,
    fingerprint: values.fingerprint,
    aggregateType: values['aggregate-type'],
    aggregateId: values['aggregate-id'],
    failedFrom: from,
    failedTo: to,
  }
  const narrowing = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(narrowing), resolved: values.all ? null : values.resolved }
}
