import { type Form, translated } from './korean-forms.ts'

const OWNERS: readonly Form[] = [
  [/^(?:the )?worker$/, '워커'],
  [/^the outbox$/, '아웃박스'],
  [/^the outbox repository$/, '아웃박스 리포지터리'],
  [/^the publisher$/, '발행'],
  [/^the dispatcher$/, '디스패처'],
  [/^the monitor$/, '모니터'],
  [/^the event catalogue$/, '이벤트 카탈로그'],
  [/^the catalogue$/, '카탈로그'],
  [/^the catalogue snapshot$/, '카탈로그 스냅숏'],
  [/^the act of an operator$/, '운영자의 작업'],
  [/^subscription (".*"|\w+)$/, '구독 $1'],
  [/^relay (".*"|\w+)$/, '릴레이 $1'],
  [/^exponential backoff$/, '지수 백오프'],
  [/^backoff schedule$/, '재시도 간격'],
  [/^listing dead letters$/, '데드 레터 목록'],
  [/^counting dead letters$/, '데드 레터 수'],
  [/^grouping dead letters$/, '데드 레터 묶음'],
  [/^exporting dead letters$/, '데드 레터 내보내기'],
  [/^purging dead letters$/, '데드 레터 삭제'],
  [/^retrying a dead letter$/, '데드 레터 재시도'],
  [/^resolving a dead letter$/, '데드 레터 해결'],
  [/^amending a dead letter$/, '데드 레터 수정'],
  [/^(?:a )?dead letter$/, '데드 레터'],
  [/^listing blocked keys$/, '막힌 키 목록'],
  [/^a page of a list$/, '목록의 한 페이지'],
  [/^(?:a )?plan$/, '재처리 계획'],
  [/^applying a plan$/, '재처리 계획 적용'],
  [/^the status of a plan$/, '재처리 계획 상태'],
  [/^cancelling a plan$/, '재처리 계획 취소'],
  [/^an export$/, '내보내기'],
  [/^listing exports$/, '내보내기 목록'],
  [/^verifying an export$/, '내보내기 확인'],
  [/^the archive (.+)$/, '보관 테이블 $1'],
  [/^PostgreSQL identifier$/, 'PostgreSQL 이름'],
  [/^the embedded server$/, '내장 서버'],
  [/^the Kafka consumer (.+)$/, 'Kafka 컨슈머 $1'],
  [/^the Kafka producer$/, 'Kafka 프로듀서'],
  [/^the Kafka event bus$/, 'Kafka 이벤트 버스'],
]

/** Whose options they are, in Korean; as it is where that is a name of the code. */
export function ownerInKorean(what: string): string {
  return translated(what, OWNERS) ?? what
}
