import type { OpenTransaction } from '../../delivery/open-transaction.ts'
import type { ReasonFacts } from '../../inspect/reason.ts'
import type { ReasonTexts } from '../../inspect/reason-texts.ts'
import type { Wording } from '../../inspect/wording.ts'

/** Reasons in Korean. */
export const reasonsKo: ReasonTexts = {
  delivered: ({ at, attempts }, { time, count }) =>
    `${time(at)}에 전달되었습니다${attempts > 1 ? `(${count(attempts)}번째 시도)` : ''}.`,
  dead: (facts, wording) =>
    `최종 실패했습니다${facts.deadLetter === null ? '' : `(데드 레터 ${facts.deadLetter}번)`}. ` +
    `오류: ${errorOf(facts.errorCode, facts.errorMessage)}. ${decisionOf(facts, wording)}`,
  streamed: () => '로그에서 전달되었습니다.',
  'in-log': ({ hasLiveWorker }) =>
    hasLiveWorker
      ? '이 구독은 로그를 읽으며 아직 이 이벤트를 지났다고 기록되지 않았습니다. 곧 전달되거나 방금 전달되었습니다.'
      : '이 구독은 로그를 읽는데, 이를 맡은 살아 있는 워커가 없습니다.',
  leased: ({ worker, until, attempt, maxAttempts }, { time, count }) =>
    `워커 ${worker}이(가) ${time(until)}까지 점유하고 처리 중입니다(${count(maxAttempts)}회 중 ${count(attempt)}번째 시도).`,
  lapsed: ({ worker, until, hasLiveWorker }, { time }) =>
    `워커 ${worker}의 점유가 ${time(until)}에 만료되었습니다. ` +
    (hasLiveWorker ? '다른 워커가 곧 회수합니다.' : '회수할 살아 있는 워커가 없습니다.'),
  paused: ({ by, at }, { time }) => `${by}이(가) ${time(at)}부터 구독을 일시 중지했습니다.`,
  joining: ({ waitsFor }, wording) =>
    `구독이 참여 중입니다. ${waitsFor === null ? '' : `${holderOf(waitsFor, wording)}을(를) 기다립니다. `}` +
    '참여가 끝나면 전달됩니다.',
  'no-worker': () => '이 구독을 처리하는 살아 있는 워커가 없습니다.',
  behind: ({ eventId, status, redriveAt }, { time }) => {
    if (status !== 'DEAD') return `같은 키의 이벤트 ${eventId}(${status}) 뒤에서 기다립니다.`
    return redriveAt instanceof Date
      ? `같은 키의 이벤트 ${eventId}이(가) 최종 실패했고, 코드에 정책이 남아 있으면 재처리 정책이 ${time(redriveAt)}에 다시 전달하므로 그 뒤에서 기다립니다.`
      : `같은 키의 이벤트 ${eventId}이(가) 최종 실패하여 사람의 결정을 기다리므로 그 뒤에서 기다립니다.`
  },
  retrying: ({ at, attempts, maxAttempts, errorCode, errorMessage }, { time, count }) =>
    `${time(at)}에 다시 시도합니다. ${count(maxAttempts)}회 중 ${count(attempts)}회 시도했습니다. 오류: ${errorOf(errorCode, errorMessage)}.`,
  suspect: ({ at }, { time }) =>
    '이 이벤트와 다른 이벤트를 처리하던 워커가 사라졌습니다. 다음에는 따로 실행합니다' +
    `${at === null ? '' : `(${time(at)} 이후)`}.`,
  ready: () => '막는 것이 없습니다. 여유가 있는 다음 점유에서 처리합니다.',
  replaced: ({ by }) => `이 구독에서는 이벤트 ${by}(으)로 대체되었습니다. 그 이벤트를 확인하십시오.`,
  missing: () => '이 구독에 있어야 하는데 전달이 없습니다. 확인: commitpost verify',
  'before-start': () => '이 구독의 대상이 아닙니다. 구독이 시작되기 전에 발행되었습니다.',
  'not-taken': () => '이 구독의 대상이 아닙니다. 이런 이벤트를 받지 않습니다.',
}

function decisionOf({ deadLetter, resolvedBy, redriveAt }: ReasonFacts['dead'], { time }: Wording): string {
  if (deadLetter === null) return '데드 레터는 결정된 뒤 지워졌습니다.'
  if (resolvedBy !== null) return `${resolvedBy}이(가) 처리했습니다.`
  return redriveAt instanceof Date
    ? `코드에 정책이 남아 있으면 재처리 정책이 ${time(redriveAt)}에 다시 전달합니다.`
    : '사람의 결정을 기다립니다.'
}

function errorOf(code: string | null, message: string | null): string {
  if (code === null) return '기록 없음'
  return message === null ? code : `${code}: ${message.replace(/\.$/, '')}`
}

function holderOf({ pid, name, seconds }: OpenTransaction, { age }: Wording): string {
  const who =
    pid === null
      ? `준비된 트랜잭션 "${name}"`
      : `프로세스 ${pid}${name === null ? '' : `("${name}")`}의 트랜잭션`
  return seconds === null ? who : `${age(seconds)} 동안 열린 ${who}`
}
