import type { CareMessages } from './care-messages.ts'

/** Korean. */
export const careKo: CareMessages = {
  fields: { reason: '사유', fingerprint: '지문' },
  reasons: {
    NO_HANDLER: '구독이 받는 이벤트인데 이 유형의 핸들러가 없습니다.',
    UNKNOWN_EVENT_TYPE: '실행 중인 코드의 카탈로그에 없는 이벤트 유형입니다.',
    PAYLOAD_INVALID: '페이로드가 실행 중인 코드의 스키마에 맞지 않습니다.',
    UPCAST_FAILED: '저장된 페이로드를 현재 버전으로 올리지 못했습니다.',
    NON_RETRYABLE: '다시 시도해도 나아지지 않는 실패라서 재시도하지 않았습니다.',
    RETRIES_EXHAUSTED: '모든 시도가 실패했고 남은 시도가 없습니다.',
    CRASHED: '이 전달을 단독으로 실행할 때도 매번 워커가 사라졌습니다.',
    SUBSCRIPTION_RETIRED: '끝나지 않은 전달이 있는 상태에서 구독이 종료되었습니다.',
    NO_SUBSCRIPTION: '받는 구독이 없는 이벤트입니다. 워커 설정에 따라 따로 보관했습니다.',
  },
  groupColumns: {
    count: '건수',
    first: '처음',
    last: '마지막',
    subscriptions: '구독',
    events: '이벤트',
    sample: '예시',
    fingerprint: '지문',
    error: '오류',
  },
  seeGroup: '한 묶음의 목록: commitpost dlq list --fingerprint 지문',
  noneBlocked: '데드 레터 때문에 막힌 키가 없습니다.',
  blockedColumns: {
    subscription: '구독',
    key: '키',
    letter: '데드 레터',
    event: '이벤트',
    blockedFor: '막힌 시간',
    waiting: '대기',
    error: '오류',
  },
  atLeast: (count) => `${count}+`,
  nextBlocked: (after) => `다음: --after ${after} 옵션을 추가하십시오.`,
  exported: (count, file) => `데드 레터 ${count}건을 내보냈습니다${file === null ? '' : `: ${file}`}`,
  maskedWhole:
    '페이로드를 모두 가렸습니다. --config FILE이 없으면 무엇이 민감한지 알 수 없습니다. --reveal과 --operator NAME을 주면 모두 보여 주고 기록합니다.',
  revealNeedsOperator: '--reveal에는 --operator NAME이 필요합니다. 민감한 값을 본 사람을 기록합니다.',
  nothingPurged: '그렇게 오래전에 해결된 데드 레터가 없습니다. 아무것도 삭제하지 않았습니다.',
  purged: (count, operator) =>
    `해결된 데드 레터 ${count}건을 삭제했습니다. 운영자 ${operator}(으)로 기록했습니다.`,
  amended: (id, eventId, subscription, operator) =>
    `데드 레터 ${id}: 이벤트 ${eventId}이(가) 그 자리를 대신하며, 워커가 준비되는 대로 "${subscription}" 구독에 전달합니다. 운영자 ${operator}(으)로 기록했습니다.`,
  notChecked: '페이로드를 검사하지 않았습니다. --config FILE을 주면 카탈로그의 스키마로 검사합니다.',
  needsPayload: '페이로드가 빠졌습니다. --payload JSON 또는 --payload-file FILE을 지정하십시오.',
  onePayload: '--payload와 --payload-file 중 하나만 지정하십시오.',
  payloadNotJson: (reason) => `페이로드가 JSON이 아닙니다: ${reason}`,
  noCatalogue: 'outbox에 카탈로그가 없습니다. createOutbox로 만든 것이어야 합니다',
  fileExists: (file) => `${file} 파일이 이미 있습니다. 다른 이름을 지정하거나 그 파일을 지우십시오.`,
  fileFailed: (file, reason) => `${file} 파일을 사용할 수 없습니다: ${reason}`,
  fileTooLarge: (file, most) => `${file} 파일이 페이로드로는 너무 큽니다. 최대 ${most}바이트까지 읽습니다.`,
}
