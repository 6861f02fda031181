import { findingsKo } from './findings-ko.ts'
import type { ProofMessages } from './proof.ts'
import { reasonsKo } from './reasons-ko.ts'

const BROKEN = {
  changed: '내용이 기록된 해시와 맞지 않습니다. 변경되었습니다',
  unlinked: '바로 앞 항목의 해시를 담고 있지 않습니다. 앞 항목이 바뀌었거나 이 항목이 끼워 넣어졌습니다',
  missing: '이 항목이 없고 뒤의 항목은 있습니다',
  'cut-off': '이 항목과 그 뒤의 모든 항목이 없습니다',
  added: '사슬의 끝 뒤에 추가되었습니다',
} as const

/** What `verify`, `why`, `doctor` and `audit verify` say in Korean. */
export const proofKo: ProofMessages = {
  verify: {
    columns: {
      subscription: '구독',
      matched: '대상',
      done: '= 완료',
      pending: '+ 대기 중',
      processing: '+ 처리 중',
      dead: '+ 데드',
      archived: '+ 보관됨',
      streamed: '+ 로그 전달',
    },
    exceptions: {
      missing: (subscription, count) => `${subscription}: 있어야 하는데 전달이 없는 이벤트 ${count}건`,
      surplus: (subscription, count) => `${subscription}: 이벤트가 없거나 받을 이벤트가 아닌 전달 ${count}건`,
      impossible: (subscription, count) =>
        `${subscription}: 정상적으로는 있을 수 없는 상태의 전달 ${count}건`,
    },
    notAllNamed: (count) => `… 그 밖에 ${count}건. --limit 옵션으로 더 볼 수 있습니다`,
    awaited: (subscription, count) =>
      `"${subscription}" 구독은 참여 중입니다. 곧 받게 되며 아직 세지 않은 이벤트: ${count}건`,
    unread: (subscription, count) =>
      `"${subscription}" 구독은 로그를 읽습니다. 아직 처리되었다고 기록되지 않은 이벤트: ${count}건`,
    removed: (subscription) =>
      `구독 ${subscription}의 행이 강제로 삭제되었습니다. 이 구독의 이벤트는 더 이상 아무에게도 전달되지 않습니다.`,
    states: { active: null, joining: '참여 중', retired: '종료됨', removed: '삭제됨' },
    verdict: (holds, at) => `${holds ? '등식이 성립합니다' : '등식이 성립하지 않습니다'} (${at} 기준).`,
  },
  why: {
    event: (eventId, eventType, stream, aggregate, at) =>
      `이벤트 ${eventId}: ${eventType}, ${aggregate}, 스트림 ${stream}, 발행 시각 ${at}`,
    unknown: (eventId) =>
      `이벤트 ${eventId}이(가) 여기에 없습니다. 발행된 적이 없거나, 트랜잭션이 롤백되었거나 아직 커밋되지 않았거나` +
      '(밖에서는 구분할 수 없습니다), 보존 기간이 지나 삭제되었습니다.',
    archived: (eventId, at, subscriptions, archive) =>
      `이벤트 ${eventId}(발행 시각 ${at})은(는) ` +
      `${subscriptions === '' ? '받는 구독이 없어' : `${subscriptions}에 전달된 뒤`} 보관되었습니다. ` +
      (archive === null ? '그 뒤 보관 테이블에서 삭제되었습니다.' : `보관 테이블: ${archive}`),
    letterRemains: (id, subscription, failedAt) =>
      `"${subscription}" 구독의 데드 레터 ${id}번에 사본이 있습니다. 실패 시각: ${failedAt}. 확인: commitpost dlq show ${id}`,
    unmatched: '이 스트림과 유형의 이벤트를 받는 구독이 없습니다. 아무에게도 전달되지 않습니다.',
    reasons: reasonsKo,
  },
  doctor: {
    severities: { ok: '정상', warning: '주의', problem: '문제' },
    checks: {
      schema: '스키마',
      objects: '인덱스',
      rights: '권한',
      bloat: '팽창',
      partitions: '파티션',
      xmin: 'xmin',
      durability: '내구성',
      clock: '시계',
      leases: '점유',
      pauses: '일시 중지',
      types: '유형',
      workers: '워커',
    },
    findings: findingsKo,
    summary: (problems, warnings) => `문제 ${problems}건, 주의 ${warnings}건.`,
  },
  audit: {
    holds: (entries) => `운영자 기록이 온전합니다. ${entries}개 항목이 각각 앞 항목의 해시를 담고 있습니다.`,
    hash: (hash) => `마지막 항목의 해시: ${hash}`,
    broken: (entry, id, problem) =>
      `운영자 기록이 ${entry}번 항목${id === null ? '' : `(id ${id})`}에서 끊어졌습니다: ${BROKEN[problem]}.`,
    lastGood: (hash) => `그 앞까지는 온전합니다. 마지막 해시: ${hash}`,
    exportsHold: (entries) => `내보내기 기록이 온전합니다. ${entries}건입니다.`,
    exportsHash: (hash) => `마지막 내보내기의 해시: ${hash}`,
    exportsBroken: (entry, id, problem) =>
      `내보내기 기록이 ${entry}번째${id === null ? '' : `(id ${id})`}에서 끊어졌습니다: ${BROKEN[problem]}.`,
  },
}
