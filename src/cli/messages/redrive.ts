import type { RedriveSkip, RedriveState } from '../../store/redrive-store.ts'

/** `redrive` and `move-aside`. */
export interface RedriveMessages {
  readonly mustBeShare: (name: string, given: string) => string
  readonly mustBeRowNumbers: (name: string, given: string) => string
  readonly mustBeFewer: (name: string, most: number, count: number) => string
  readonly planned: (id: string, letters: string) => string
  readonly reordered: (letters: string) => string
  readonly unreachable: (letters: string) => string
  readonly moreKeys: (shown: string, all: string) => string
  readonly whatNext: (id: string, expires: string) => string
  readonly columns: Readonly<Record<'subscription' | 'event' | 'key' | 'letters' | 'reordered', string>>
  readonly states: Readonly<Record<RedriveState, string>>
  readonly fields: Readonly<
    Record<
      'letters' | 'waiting' | 'driven' | 'onTheirWay' | 'succeeded' | 'failedAgain' | 'blocked' | 'skipped',
      string
    >
  >
  readonly skips: Readonly<Record<RedriveSkip, string>>
  readonly title: (id: string, state: string) => string
  /** Of one event on its way, where nothing has changed for a while. */
  readonly stalled: (age: string, subscription: string, eventId: string) => string
  readonly stopped: (id: string) => string
  readonly interrupted: (id: string) => string
  readonly cancelled: (id: string, operator: string) => string
  readonly movedAside: (subscription: string, key: string, moved: string, operator: string) => string
  readonly notFree: (moved: string) => string
}

/** English. */
export const redriveEn: RedriveMessages = {
  mustBeShare: (name, given) => `${name} must be a share such as 0.5 or 50%, or never, not "${given}".`,
  mustBeRowNumbers: (name, given) =>
    `${name} must be numbers as the list shows them, with commas between, not "${given}".`,
  mustBeFewer: (name, most, count) => `${name} must be at most ${most} numbers, but is ${count}.`,
  planned: (id, letters) =>
    `Plan ${id}: dead letters that would be delivered again: ${letters}. Nothing has been changed.`,
  reordered: (letters) =>
    `Too late for their order: ${letters}. Later events of their keys were handled already.`,
  unreachable: (letters) => `Left out: ${letters}. Their subscription is retired, or their delivery is gone.`,
  moreKeys: (shown, all) => `${shown} of ${all} keys.`,
  whatNext: (id, expires) => `Apply it before ${expires}: commitpost redrive apply ${id} --operator NAME`,
  columns: {
    subscription: 'SUBSCRIPTION',
    event: 'EVENT',
    key: 'KEY',
    letters: 'DEAD LETTERS',
    reordered: 'TOO LATE',
  },
  states: {
    planned: 'planned',
    applying: 'being applied',
    done: 'done',
    stopped: 'stopped by itself',
    cancelled: 'cancelled',
  },
  fields: {
    letters: 'planned',
    waiting: 'waiting',
    driven: 'delivered again',
    onTheirWay: 'on their way',
    succeeded: 'succeeded',
    failedAgain: 'failed again',
    blocked: 'behind another dead letter',
    skipped: 'passed over',
  },
  skips: {
    resolved: 'decided meanwhile',
    gone: 'delivery gone',
    retired: 'subscription retired',
    behind: 'behind one that is dead',
  },
  title: (id, state) => `Plan ${id}: ${state}`,
  stalled: (age, subscription, eventId) =>
    `Nothing has changed for ${age}: it waits for "${subscription}". What for, says: commitpost why ${eventId}`,
  stopped: (id) =>
    `Too many failed again. Once the cause is gone: commitpost redrive apply ${id} --resume --operator NAME`,
  interrupted: (id) =>
    `Interrupted; what is on its way goes on. Go on with: commitpost redrive apply ${id} --operator NAME`,
  cancelled: (id, operator) => `Plan ${id} is cancelled, by ${operator}. What is on its way already goes on.`,
  movedAside: (subscription, key, moved, operator) =>
    `Key "${key}" of "${subscription}" is moved aside, by ${operator}. Events that are dead letters now: ${moved}.`,
  notFree: (moved) =>
    `The key is still blocked: a worker has one of its events in hand, or somebody has one locked. Events that are dead letters now: ${moved}. Call it again in a moment.`,
}

/** Korean. */
export const redriveKo: RedriveMessages = {
  mustBeShare: (name, given) =>
    `${name} 값은 0.5, 50% 같은 비율 또는 never여야 합니다. 입력한 값: "${given}"`,
  mustBeRowNumbers: (name, given) =>
    `${name} 값은 목록에 표시된 번호를 쉼표로 구분한 것이어야 합니다. 입력한 값: "${given}"`,
  mustBeFewer: (name, most, count) => `${name} 값은 번호 ${most}개 이하여야 합니다. 입력한 개수: ${count}개`,
  planned: (id, letters) =>
    `재처리 계획 ${id}: 다시 전달할 데드 레터 ${letters}건. 아직 아무것도 바뀌지 않았습니다.`,
  reordered: (letters) => `순서가 뒤바뀌는 것: ${letters}건. 같은 키의 뒤 이벤트가 이미 처리되었습니다.`,
  unreachable: (letters) => `제외된 것: ${letters}건. 구독이 종료되었거나 전달이 남아 있지 않습니다.`,
  moreKeys: (shown, all) => `키 ${all}개 중 ${shown}개입니다.`,
  whatNext: (id, expires) => `${expires} 전에 적용하십시오: commitpost redrive apply ${id} --operator NAME`,
  columns: {
    subscription: '구독',
    event: '이벤트',
    key: '키',
    letters: '데드 레터',
    reordered: '순서 뒤바뀜',
  },
  states: {
    planned: '계획됨',
    applying: '적용 중',
    done: '완료',
    stopped: '스스로 멈춤',
    cancelled: '취소됨',
  },
  fields: {
    letters: '계획',
    waiting: '대기 중',
    driven: '다시 전달',
    onTheirWay: '전달 중',
    succeeded: '성공',
    failedAgain: '다시 실패',
    blocked: '다른 데드 레터 뒤에서 대기',
    skipped: '건너뜀',
  },
  skips: {
    resolved: '그사이 결정됨',
    gone: '전달 없음',
    retired: '구독 종료됨',
    behind: '데드 레터 뒤에 있음',
  },
  title: (id, state) => `재처리 계획 ${id}: ${state}`,
  stalled: (age, subscription, eventId) =>
    `${age} 동안 바뀐 것이 없습니다. "${subscription}" 구독의 전달을 기다리고 있습니다. 이유를 보려면: commitpost why ${eventId}`,
  stopped: (id) =>
    `너무 많이 다시 실패했습니다. 원인을 없앤 뒤: commitpost redrive apply ${id} --resume --operator NAME`,
  interrupted: (id) =>
    `중단했습니다. 이미 보낸 것은 계속 전달됩니다. 이어서 하려면: commitpost redrive apply ${id} --operator NAME`,
  cancelled: (id, operator) =>
    `재처리 계획 ${id}을(를) 취소했습니다 (운영자: ${operator}). 이미 보낸 것은 계속 전달됩니다.`,
  movedAside: (subscription, key, moved, operator) =>
    `"${subscription}" 구독의 키 "${key}"을(를) 옆으로 옮겼습니다 (운영자: ${operator}). 데드 레터가 된 이벤트: ${moved}건`,
  notFree: (moved) =>
    `키가 아직 막혀 있습니다. 워커가 이 키의 이벤트를 처리 중이거나 다른 트랜잭션이 잠갔습니다. 데드 레터가 된 이벤트: ${moved}건. 잠시 후 다시 실행하십시오.`,
}
