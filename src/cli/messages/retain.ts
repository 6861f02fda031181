import type { RetentionWait } from '../../store/retention-store.ts'

/** `retain`. */
export interface RetainMessages {
  readonly columns: Readonly<
    Record<
      'policy' | 'stream' | 'state' | 'deleted' | 'archived' | 'left' | 'archive' | 'started' | 'finished',
      string
    >
  >
  readonly states: Readonly<Record<'planned' | 'running' | 'done' | 'interrupted' | 'superseded', string>>
  readonly none: string
  readonly progress: (policy: string, deleted: string, archived: string, position: string) => string
  readonly awaitingExport: (policy: string, events: string) => string
  readonly unknownType: (policy: string, events: string) => string
  readonly nothingChanged: string
  readonly recorded: (operator: string) => string
  readonly nothingWent: string
  readonly waits: (policy: string, waitsFor: RetentionWait) => string
  readonly interrupted: string
  readonly needsOperator: string
}

const WAITS_EN: Readonly<Record<RetentionWait, string>> = {
  holder:
    'waits: somebody else carries it out, or did until half a minute ago. See: commitpost retain status',
  registration:
    'waits until no subscription is registering or joining: it might want what would go. See: commitpost status',
  tables: 'waits for a transaction that uses the tables, to drop a period. See: commitpost doctor',
}

const WAITS_KO: Readonly<Record<RetentionWait, string>> = {
  holder: '다른 쪽이 실행 중이거나 30초 전까지 실행했으므로 기다립니다. 확인: commitpost retain status',
  registration:
    '등록 중이거나 참여 중인 구독이 필요로 할 수 있으므로 끝날 때까지 기다립니다. 확인: commitpost status',
  tables: '기간을 삭제하려고 테이블을 사용하는 트랜잭션을 기다립니다. 확인: commitpost doctor',
}

/** English. */
export const retainEn: RetainMessages = {
  columns: {
    policy: 'POLICY',
    stream: 'STREAM',
    state: 'STATE',
    deleted: 'DELETED',
    archived: 'ARCHIVED',
    left: 'LEFT',
    archive: 'ARCHIVE',
    started: 'STARTED',
    finished: 'FINISHED',
  },
  states: {
    planned: 'would go',
    running: 'running',
    done: 'done',
    interrupted: 'interrupted',
    superseded: 'policy changed',
  },
  none: 'No retention policy has been carried out yet.',
  progress: (policy, deleted, archived, position) =>
    `${policy}: deleted ${deleted}  archived ${archived}  up to position ${position}`,
  awaitingExport: (policy, events) =>
    `${policy}: left because no verified export has them: ${events}. Export and verify them, then run it again.`,
  unknownType: (policy, events) =>
    `${policy}: left because the catalogue does not know their type, so that nobody can say what to mask: ${events}.`,
  nothingChanged: 'Nothing has been changed.',
  recorded: (operator) => `Recorded for ${operator}.`,
  nothingWent: 'There was nothing to let go, so nothing was recorded.',
  waits: (policy, waitsFor) => `${policy}: ${WAITS_EN[waitsFor]}`,
  interrupted: 'Interrupted. Run it again, or let a worker do it: it goes on where it was.',
  needsOperator: '--operator is missing: who does this is recorded with the act. (--dry-run needs nobody.)',
}

/** Korean. */
export const retainKo: RetainMessages = {
  columns: {
    policy: '정책',
    stream: '스트림',
    state: '상태',
    deleted: '삭제',
    archived: '보관',
    left: '남김',
    archive: '보관 테이블',
    started: '시작',
    finished: '종료',
  },
  states: {
    planned: '대상',
    running: '진행 중',
    done: '완료',
    interrupted: '중단됨',
    superseded: '정책 변경됨',
  },
  none: '아직 실행된 보존 정책이 없습니다.',
  progress: (policy, deleted, archived, position) =>
    `${policy}: 삭제 ${deleted}건  보관 ${archived}건  위치 ${position}까지`,
  awaitingExport: (policy, events) =>
    `${policy}: 검증된 내보내기가 없어 남긴 이벤트 ${events}건. 내보내고 검증한 뒤 다시 실행하십시오.`,
  unknownType: (policy, events) =>
    `${policy}: 카탈로그에 없는 유형이라 무엇을 가릴지 알 수 없어 남긴 이벤트 ${events}건.`,
  nothingChanged: '아무것도 바뀌지 않았습니다.',
  recorded: (operator) => `운영자 ${operator}(으)로 기록했습니다.`,
  nothingWent: '삭제하거나 보관할 이벤트가 없어 기록하지 않았습니다.',
  waits: (policy, waitsFor) => `${policy}: ${WAITS_KO[waitsFor]}`,
  interrupted: '중단했습니다. 다시 실행하거나 워커에 맡기면 이어서 진행합니다.',
  needsOperator:
    '--operator 옵션이 없습니다. 작업하는 사람의 이름은 작업과 함께 기록됩니다. (--dry-run에는 필요 없습니다.)',
}
