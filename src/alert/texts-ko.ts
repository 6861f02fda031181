import type { AlertTexts } from './texts.ts'

const of = (subscription: string): string => `구독 "${subscription}"`

/** Korean. */
export const ko: AlertTexts = {
  headings: {
    alarm: '경보',
    deadLetter: 'DLQ 경보',
    recovered: '복구됨',
    notice: '알림',
    report: '보고',
    advice: '조치',
  },
  facts: {
    deadLetter: '데드 레터',
    eventId: '이벤트 ID',
    eventType: '이벤트 유형',
    aggregate: '애그리거트',
    subscription: '구독',
    stream: '스트림',
    traceId: '트레이스 ID',
    retryCount: '재시도 횟수',
    error: '오류',
    failedAt: '실패 시각',
    value: '현재',
    threshold: '임계값',
    since: '처음 발견',
    pausedBy: '일시 중지한 사람',
    pending: '대기 중',
    processing: '처리 중',
    oldestPending: '가장 오래된 대기',
    dead: '데드',
    workers: '살아 있는 워커',
    worker: '워커',
    lastSeen: '마지막 신호',
    unresolved: '미해결',
    oldest: '가장 오래된 것',
  },
  conditions: {
    unresolved: ({ value }) => `사람의 결정을 기다리는 데드 레터 수: ${value}`,
    stuckPending: ({ subscription, value, stuckAfter }) =>
      `${of(subscription)}에서 ${stuckAfter} 넘게 대기 중인 전달 수: ${value}`,
    unpublished: ({ subscription, value }) => `${of(subscription)}에서 아직 끝나지 않은 전달 수: ${value}`,
    oldestPending: ({ subscription, value }) =>
      `${of(subscription)}에서 가장 오래된 대기 전달이 ${value} 동안 기다리고 있습니다`,
    dead: ({ subscription, value }) =>
      `${of(subscription)}에서 사람의 결정을 기다리는 데드 레터 수: ${value}`,
    meanRetries: ({ subscription, value }) =>
      `${of(subscription)}의 최근 전달은 평균 ${value}회 재시도되었습니다`,
    eventRate: ({ value }) => `이벤트가 초당 ${value}건 발행되고 있습니다`,
    workerMissing: ({ subscription, value }) =>
      `${of(subscription)}을 처리하는 살아 있는 워커가 없고, 가장 오래된 전달이 ${value} 동안 기다리고 있습니다`,
    streamGap: ({ subscription, reason }) =>
      `${of(subscription)}의 로그에서 이벤트가 유실되어(${reason}) 테이블에서 전달합니다`,
  },
  recovered: {
    unresolved: () => '사람의 결정을 기다리는 데드 레터가 다시 적거나 없습니다',
    stuckPending: (subscription) => `${of(subscription)}의 전달이 더 이상 정체되어 있지 않습니다`,
    unpublished: (subscription) => `${of(subscription)}의 밀린 전달이 다시 적어졌습니다`,
    oldestPending: (subscription) => `${of(subscription)}의 전달이 더 이상 오래 기다리지 않습니다`,
    dead: (subscription) => `${of(subscription)}의 미해결 데드 레터가 다시 적거나 없습니다`,
    meanRetries: (subscription) => `${of(subscription)}의 전달이 다시 거의 재시도되지 않습니다`,
    eventRate: () => '초당 발행되는 이벤트가 다시 줄었습니다',
    workerMissing: (subscription) => `${of(subscription)}이 다시 처리되고 있거나 기다리는 전달이 없습니다`,
    streamGap: (subscription) => `최근 ${of(subscription)}의 로그에서 유실된 것이 없습니다`,
  },
  advice: {
    unresolved: () => 'commitpost dlq list로 확인하고, 원인을 고친 뒤 재시도하거나 해결 처리하십시오.',
    stuckPending: () =>
      'commitpost status로 확인하십시오. 워커가 실행 중인지, 일시 중지되었는지, 핸들러가 멈추었는지 살펴보십시오. 데드 레터 때문에 막힌 키는 commitpost dlq blocked로 볼 수 있습니다.',
    unpublished: () => 'commitpost status로 확인하십시오. 워커를 늘리거나 동시 실행 수를 높이십시오.',
    oldestPending: () =>
      'commitpost status로 확인하십시오. 워커를 늘리거나 계속 실패하는 전달을 찾으십시오. 데드 레터 때문에 막힌 키는 commitpost dlq blocked로 볼 수 있습니다.',
    dead: (subscription) =>
      `commitpost dlq list --subscription ${subscription} 명령으로 확인하십시오. 핸들러나 그것이 호출하는 대상이 실패하고 있습니다.`,
    meanRetries: () => '핸들러나 그것이 호출하는 대상이 불안정합니다. 워커 로그의 경고를 확인하십시오.',
    eventRate: () =>
      '초당 1,000건을 넘거나 500밀리초 미만이 필요하면 테이블 폴링보다 로그 스트림이나 변경 데이터 캡처가 적합합니다.',
    streamGap: () =>
      '일부 이벤트는 두 번 올 수 있습니다. 누가 복제 슬롯이나 퍼블리케이션을 없앴는지, 왜 서버가 로그를 너무 많이 보관했는지 확인하십시오. 이유는 docs/log-stream.md에 있습니다.',
    workerMissing: (subscription) =>
      `이 구독을 처리하는 워커를 시작하거나 구독을 종료하십시오: commitpost retire ${subscription} --operator NAME`,
  },
  pausedAdvice: (subscription) =>
    `일시 중지되어 워커가 전달을 가져가지 않습니다. 다시 시작해도 되면 재개하십시오: commitpost resume ${subscription} --operator NAME`,
  logUnread: ({ subscription, value }) =>
    `${of(subscription)}을 처리하는 살아 있는 워커가 없습니다. ${value} 동안 아무도 로그를 읽지 않았고, 서버는 그 로그를 계속 보관합니다`,
  deadLetter: (eventType, subscription) =>
    subscription === null
      ? `${eventType} 이벤트를 받는 구독이 없어 데드 레터로 옮겼습니다`
      : `${of(subscription)}에서 ${eventType} 처리가 최종 실패했습니다`,
  deadLetters: (count) => `새 데드 레터가 ${count}건입니다`,
  deadLetterAdvice: {
    deliverable: (id) => `commitpost dlq show ${id}, 이어서 dlq retry ${id} 또는 dlq resolve ${id}`,
    unmatched: (id) =>
      `commitpost dlq show ${id}. 받는 구독이 없어 재시도할 수 없습니다. 구독을 추가하고 새 ID로 다시 발행하거나 dlq resolve ${id} 하십시오`,
    retired: (id) =>
      `commitpost dlq show ${id}. 구독이 종료되어 재시도할 수 없습니다. 다른 구독이 받도록 새 ID로 다시 발행하거나 dlq resolve ${id} 하십시오`,
  },
  deadLettersAdvice: 'commitpost dlq list로 확인하십시오. 건수가 많아 한 번에 알립니다.',
  group: (subscription, eventType, errorCode) => `${subscription}, ${eventType}, ${errorCode}`,
  vanished: (count) => `워커 ${count}개가 정상 종료 없이 사라졌습니다`,
  vanishedWorker: (where, lastSeen, subscriptions) =>
    `${where}, 마지막 신호 ${lastSeen} 전, 처리하던 구독: ${subscriptions.join(', ') || '없음'}`,
  vanishedAdvice:
    '비정상 종료되었거나, 강제 종료되었거나, 데이터베이스에 연결하지 못합니다. 처리 중이던 전달은 다시 전달됩니다.',
  report: '아웃박스 현황',
  reportLine: ({ pending, processing, dead, oldest, pausedBy }) =>
    `대기 ${pending}, 처리 중 ${processing}, 데드 ${dead}` +
    `${oldest === null ? '' : `, 가장 오래된 대기 ${oldest}`}${pausedBy === null ? '' : `, ${pausedBy}이(가) 일시 중지`}`,
  oldestLetter: (id, eventType, subscription, age) => `${id}: ${subscription}의 ${eventType}, ${age} 전`,
  more: (count) => `그 밖에 ${count}건`,
  moreThan: (count) => `${count} 초과`,
}
