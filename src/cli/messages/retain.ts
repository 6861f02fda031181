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
  readonly interrupted: string
  readonly needsOperator: string
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
  interrupted: '중단했습니다. 다시 실행하거나 워커에 맡기면 이어서 진행합니다.',
  needsOperator:
    '--operator 옵션이 없습니다. 작업하는 사람의 이름은 작업과 함께 기록됩니다. (--dry-run에는 필요 없습니다.)',
}
