import type { RefusalReason } from '../../runtime/refused-error.ts'

const UNTIL_THEN = "그때까지는 engine: 'stream'을 빼십시오. 큐는 그대로 동작합니다."

/** Why there can be no log stream, in Korean. Where `{name}` stands, what is known by that name takes its place. */
export const streamRefusalsKo: Readonly<Record<Extract<RefusalReason, `stream-${string}`>, string>> = {
  'stream-of-store': '이 저장소에는 구독 "{subscription}"이(가) 읽을 로그가 없습니다.',
  'stream-without-pool':
    '로그 스트림은 풀의 설정으로 자체 연결을 여는데, 그 설정은 pg.Pool에만 있습니다. postgresStore에 pg.Pool을 지정하십시오.',
  'stream-unpublished': `퍼블리케이션이 없거나 일부 이벤트를 빠뜨려서 로그 스트림을 쓸 수 없습니다. 데이터베이스의 CREATE 권한이 있는 테이블 소유자로 실행하십시오: {statement}. ${UNTIL_THEN}`,
  'stream-publication-lost': `그사이 퍼블리케이션이 삭제되어 로그 스트림을 쓸 수 없습니다. ${UNTIL_THEN}`,
  'stream-of-standby': `이 서버는 대기 서버(standby)라서 로그 스트림을 쓸 수 없습니다. 풀에 주 서버(primary)의 주소를 지정하십시오. ${UNTIL_THEN}`,
  'stream-wal-level': `wal_level이 "{level}"이라서 로그 스트림을 쓸 수 없습니다. 설정하고 서버를 다시 시작하십시오: alter system set wal_level = 'logical'. ${UNTIL_THEN}`,
  'stream-without-connection': `서버에 로그 스트림이 쓸 연결이 남아 있지 않습니다({said}). max_wal_senders 때문이라면 늘리고 서버를 다시 시작하십시오: alter system set max_wal_senders = 20. ${UNTIL_THEN}`,
  'stream-not-allowed': `서버가 복제 연결을 거부합니다(SQLSTATE {state}: {said}). 슈퍼유저로 실행하십시오: alter role {role} replication. 연결은 풀러를 거치지 않고 서버에 직접 닿아야 하며 pg_hba.conf가 허용해야 합니다. ${UNTIL_THEN}`,
  'stream-without-slot': `서버의 복제 슬롯이 모두 사용 중입니다. 아무도 읽지 않는 슬롯(pg_replication_slots에서 active가 거짓인 것)을 지우거나, 늘리고 서버를 다시 시작하십시오: alter system set max_replication_slots = 20. ${UNTIL_THEN}`,
  'stream-slot-in-use':
    '복제 슬롯 "{slot}"을(를) 다른 연결이 놓지 않고 사용 중입니다. pg_replication_slots.active_pid를 확인하십시오.',
  'stream-columns-missing':
    '퍼블리케이션이 outbox_event의 열을 빠뜨립니다: {columns}. 테이블 전체를 퍼블리시하십시오: alter publication … set table …outbox_event.',
  'stream-log-too-long':
    '테이블에서 처리하는 동안 서버에 쌓인 로그가 walBudgetBytes를 넘어 버렸습니다. 처음부터 다시 읽습니다.',
}
