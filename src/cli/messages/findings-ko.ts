import {
  type FindingText,
  type FindingTexts,
  megabytes,
  nameList,
  quoted,
  typeList,
} from '../../inspect/finding-texts.ts'
import type { XminHolder } from '../../store/doctor-facts.ts'

const fine = (message: string): FindingText => ({ message, advice: null })

const STATES = {
  missing: '설치되지 않음',
  behind: '너무 오래됨',
  ahead: '너무 새것',
  current: '최신',
} as const
const KINDS = { index: '인덱스', trigger: '트리거' } as const
const PROBLEMS = { missing: '없습니다', invalid: '유효하지 않습니다', disabled: '꺼져 있습니다' } as const

const DURABILITY_ADVICE: Readonly<Record<string, string>> = {
  fsync: 'postgresql.conf에서 켜십시오. 장비가 멈추면 데이터베이스 전체를 쓸 수 없게 될 수 있습니다.',
  full_page_writes: 'postgresql.conf에서 켜십시오. 절반만 쓰인 페이지를 복구할 수 없습니다.',
  synchronous_commit:
    '발행할 때와 워커에서는 자동으로 켜집니다. 핸들러가 커밋한 것과 운영자의 조치는 장애 때 사라질 수 있습니다. 해당 역할에서 이 설정을 빼십시오.',
}

const HOLDER_ADVICE: Readonly<Record<XminHolder['kind'], (holder: XminHolder) => string>> = {
  session: ({ pid }) => `트랜잭션을 끝내게 하거나 종료하십시오: select pg_terminate_backend(${pid})`,
  prepared: ({ name }) => `끝낼 사람이 없으면: rollback prepared ${quoted(name)}`,
  slot: ({ name }) => `더 이상 읽지 않으면: select pg_drop_replication_slot(${quoted(name)})`,
  standby: () => '스탠바이에서 무엇이 실행되는지 보거나 hot_standby_feedback을 끄십시오.',
}

/** Findings in Korean. */
export const findingsKo: FindingTexts = {
  SCHEMA_CURRENT: ({ version }) => fine(`테이블 버전이 ${version}로, 이 프로그램에 맞습니다.`),
  SCHEMA_NOT_CURRENT: ({ state, found, needed }) => ({
    message: `스키마 상태: ${STATES[state]}. ${found === null ? '버전 없음' : `버전 ${found}`}, 필요한 버전 ${needed}. 테이블이 필요한 검사는 하지 않았습니다.`,
    advice:
      state === 'ahead' ? '여기의 commitpost 패키지를 업그레이드하십시오.' : '실행: commitpost migrate up',
  }),
  SCHEMA_CHANGED: ({ steps }) => ({
    message: `적용된 뒤 내용이 바뀐 스키마 단계가 있습니다: ${steps.join(', ')}`,
    advice: '누가 적용된 단계를 고쳤는지 확인하고 새로 만든 스키마와 비교하십시오.',
  }),
  OBJECTS_SOUND: () => fine('모든 인덱스와 트리거가 정상입니다.'),
  OBJECT_BROKEN: ({ kind, name, problem, table }) => ({
    message: `${KINDS[kind]} ${name}이(가) ${PROBLEMS[problem]}.`,
    advice:
      problem === 'disabled'
        ? `켜십시오(alter table ${table} enable trigger ${name}). 그 뒤 commitpost verify로 그동안 쓰인 것을 확인하십시오.`
        : `${problem === 'invalid' ? '지우고 ' : ''}다시 만드십시오. commitpost migrate sql이 정의를 출력합니다. 그 뒤 commitpost verify로 확인하십시오.`,
  }),
  RIGHTS_SOUND: () => fine('필요 없는 권한을 가진 역할이 없습니다.'),
  RIGHT_SURPLUS: ({ role, right, object }) => ({
    message: `${role === 'public' ? '모두' : `역할 ${role}`}에게 ${object}에 대한 ${right} 권한이 있습니다.`,
    advice: `회수하십시오: revoke ${right} on ${object.endsWith(')') ? 'function ' : ''}${object} from ${role}. 필요한 권한은 commitpost roles sql이 출력합니다.`,
  }),
  TABLES_UNREADABLE: ({ tables }) => ({
    message: `접속한 역할이 읽을 수 없는 테이블: ${tables.join(', ')}`,
    advice: '조회(viewer) 역할로 실행하십시오. 만드는 방법은 commitpost roles sql이 출력합니다.',
  }),
  TABLES_LEAN: () => fine('부풀어 오른 테이블이 없습니다.'),
  DEAD_TUPLES: ({ table, deadTuples, liveTuples, lastVacuum }, { count, time }) => ({
    message: `${table}에 죽은 행 ${count(deadTuples)}개, 산 행 ${count(liveTuples)}개가 있습니다. 마지막 vacuum: ${lastVacuum === null ? '없음' : time(lastVacuum)}`,
    advice: `누가 정리를 막는지(xmin 검사) 확인한 뒤 실행하십시오: vacuum ${table}. 되풀이되면 autovacuum을 더 자주 돌리십시오.`,
  }),
  BLOAT: ({ table, bytes, wastedBytes }, wording) => ({
    message: `${table} ${megabytes(bytes, wording)} 가운데 약 ${megabytes(wastedBytes, wording)}이(가) 비어 있습니다(추정).`,
    advice: '새 행에 다시 쓰입니다. 돌려받으려면 pg_repack을 쓰거나, 작업이 없을 때 vacuum full 하십시오.',
  }),
  AUTOVACUUM_OFF: ({ table }) => ({
    message: `${table}의 autovacuum이 꺼져 있습니다.`,
    advice: `켜십시오: alter table ${table} reset (autovacuum_enabled), 서버 설정 autovacuum = on`,
  }),
  PARTITIONS_AHEAD: ({ madeUntil }, { time }) => fine(`${time(madeUntil)}까지의 파티션이 있습니다.`),
  PARTITIONS_SHORT: ({ madeUntil }, { time }) => ({
    message: `파티션이 ${time(madeUntil)}까지만 있습니다. 그 뒤에 발행하는 이벤트는 거부됩니다.`,
    advice:
      '파티션은 워커가 만듭니다. 워커가 실행 중인지, 파티션에 관해 무엇을 알리는지 확인하십시오. 직접 만들려면 commitpost migrate partition을 실행하십시오.',
  }),
  PARTITIONS_MISSING: ({ partitions }) => ({
    message: `없어졌거나 분리된 파티션이 있습니다: ${nameList(partitions)}. 그 안에 있던 것은 아무도 볼 수 없고, 그 시기의 이벤트는 발행이 거부됩니다.`,
    advice:
      '다시 만들거나 붙이십시오: docs/partitions.md의 "A partition that is gone". 그 뒤 commitpost verify로 확인하십시오.',
  }),
  PARTITIONS_UNEXPECTED: ({ partitions }) => ({
    message: `Commitpost가 만들지 않은 파티션이 있습니다: ${nameList(partitions)}. 워커가 미리 만드는 파티션을 막을 수 있습니다.`,
    advice: '누가 붙였는지 확인하고, 무엇이 들어 있는지 본 뒤 분리하십시오.',
  }),
  PARTITIONING_UNFINISHED: ({ madeUntil }, { time }) => ({
    message: `테이블을 파티션으로 나누는 작업이 끝나지 않았습니다. 끝날 때까지 ${time(madeUntil)} 이후의 ID는 거부됩니다.`,
    advice: 'commitpost migrate partition으로 마치십시오. 마치지 않으면 그 한 시간 전에 워커가 되돌립니다.',
  }),
  XMIN_FREE: () => fine('서버의 정리를 오래 막는 것이 없습니다.'),
  XMIN_HELD: (holder, { count, age }) => ({
    message: `${holderText(holder)}이(가) 서버의 정리를 막고 있습니다: 트랜잭션 ${count(holder.transactions)}개 전${holder.seconds === null ? '' : `, ${age(holder.seconds)} 동안`}.${holder.query === null ? '' : ` 마지막 문장: ${holder.query}`}`,
    advice: HOLDER_ADVICE[holder.kind](holder),
  }),
  SESSIONS_HIDDEN: () => ({
    message: '접속한 역할은 다른 세션이 언제부터 스냅숏을 잡고 있는지 볼 수 없습니다.',
    advice: 'pg_read_all_stats 역할을 부여하십시오.',
  }),
  DURABLE: () => fine('커밋된 것은 디스크에 있습니다.'),
  NOT_DURABLE: ({ setting, value }) => ({
    message: `${setting} 설정이 ${value}입니다.`,
    advice: DURABILITY_ADVICE[setting] ?? null,
  }),
  CLOCKS_AGREE: () => fine('이 장비와 데이터베이스의 시계가 맞습니다.'),
  CLOCK_SKEW: ({ skewMs }, { count }) => ({
    message: `이 장비와 데이터베이스의 시계가 ${count(Math.round(skewMs))} ms 이상 어긋납니다.`,
    advice:
      '양쪽에 NTP를 설정하십시오. 점유는 데이터베이스 시계만 따르지만 로그와 이벤트의 시각은 그렇지 않습니다.',
  }),
  LEASES_SOUND: () => fine('만료된 채 남은 점유가 없습니다.'),
  LEASES_LAPSED: ({ subscription, count, seconds }, wording) => ({
    message: `구독 ${subscription}: 만료된 뒤 회수되지 않은 점유 ${wording.count(count)}건, 가장 오래된 것은 ${wording.age(seconds)} 전입니다.`,
    advice:
      '이 구독을 처리하는 워커를 시작하십시오. 실행 중이라면 로그를 확인하십시오. 데이터베이스에 닿지 못하거나 막혀 있습니다.',
  }),
  NONE_PAUSED: () => fine('일시 중지된 구독이 없습니다.'),
  PAUSED: ({ subscription, by, at }, { time }) => ({
    message: `구독 ${subscription}을(를) ${by}이(가) ${time(at)}부터 일시 중지했습니다.`,
    advice: `사유가 해소되면: commitpost resume ${subscription} --operator NAME`,
  }),
  TYPES_KNOWN: () => fine('최근 이벤트의 유형이 모두 카탈로그에 있습니다.'),
  TYPES_NOT_COMPARED: () => fine('이벤트 유형을 비교할 카탈로그가 주어지지 않았습니다(--config).'),
  TYPES_UNKNOWN: ({ types }, { count }) => ({
    message: `최근 이벤트 가운데 카탈로그에 없는 유형: ${typeList(types, count)}`,
    advice: '카탈로그에 추가하거나 누가 발행하는지 확인하십시오. 모르는 유형은 데드 레터가 됩니다.',
  }),
  ALL_SERVED: () => fine('모든 구독을 살아 있는 워커가 처리합니다.'),
  NO_WORKER: ({ subscription, hasPending }) => ({
    message: `구독 ${subscription}을(를) 처리하는 살아 있는 워커가 없습니다${hasPending ? '. 기다리는 이벤트가 있습니다' : ''}.`,
    advice: `워커를 시작하십시오. 더 이상 쓰지 않는 구독이면: commitpost retire ${subscription} --operator NAME`,
  }),
}

function holderText({ kind, name, pid }: XminHolder): string {
  const named = name === null ? '' : ` "${name}"`
  const texts = {
    session: `프로세스 ${pid}${named}`,
    prepared: `준비된 트랜잭션${named}`,
    slot: `복제 슬롯${named}`,
    standby: `스탠바이${named}`,
  }
  return texts[kind]
}
