import { InvalidEventError } from '../../event/errors.ts'
import type { CommitpostErrorCode } from '../../runtime/error-codes.ts'
import {
  type CommitpostError,
  DeadlineExceededError,
  InvalidOptionsError,
  NotFoundError,
  SubscriptionConflictError,
} from '../../runtime/errors.ts'
import { type RefusalData, type RefusalReason, RefusedError } from '../../runtime/refused-error.ts'
import { SchemaMissingError, SchemaVersionError } from '../../runtime/schema-errors.ts'
import { describeError } from '../../runtime/text.ts'
import { careKo } from './care-ko.ts'
import { eventProblemInKorean } from './event-problems-ko.ts'
import { ownerInKorean } from './owners-ko.ts'
import { problemInKorean } from './problems-ko.ts'
import { streamRefusalsKo } from './stream-refusals-ko.ts'

/** Where `{name}` stands, what is known by that name takes its place. */
const REFUSALS: Readonly<Record<RefusalReason, string>> = {
  'letter-retried': '데드 레터 {id}은(는) 이미 재시도했습니다. 운영자: {by}.',
  'letter-resolved': '데드 레터 {id}은(는) 이미 해결했습니다. 운영자: {by}.',
  'letter-amended': '데드 레터 {id}은(는) 이미 수정했습니다. 운영자: {by}.',
  'letter-of-retired':
    '데드 레터 {id}의 구독 "{subscription}"은(는) 종료되어 전달할 곳이 없습니다. 이벤트를 다시 발행하거나 직접 해결하십시오.',
  'letter-without-delivery':
    '데드 레터 {id}에는 다시 전달할 DEAD 전달이 없습니다. 구독이 받은 적이 없거나 보존 정책이 삭제했습니다. 이벤트를 다시 발행하거나 직접 해결하십시오.',
  'letter-without-event':
    '데드 레터 {id}의 이벤트를 보존 정책이 삭제했습니다. 이벤트를 다시 발행하거나 직접 해결하십시오.',
  'letters-decided':
    '지정한 데드 레터 중 이미 결정된 것이 {count}건 있습니다(괄호 안은 운영자): {letters}. 아무것도 계획하지 않았습니다. 이미 결정된 것을 빼고 다시 계획하십시오.',
  'key-not-blocked':
    '구독 "{subscription}"의 키 "{key}"은(는) 데드 레터로 막혀 있지 않습니다. 막힌 키만 옆으로 치울 수 있습니다.',
  'plan-cancelled': '계획 {plan}은(는) 취소되었습니다. 새 계획을 만드십시오.',
  'plan-expired': '계획 {plan}은(는) 만료되었습니다. 센 지 오래되었으니 새 계획을 만드십시오.',
  'plan-stopped':
    '계획 {plan}은(는) 스스로 멈췄습니다. 끝난 {ended}건 중 {died}건이 다시 실패했습니다. 원인을 없앤 뒤 --resume 옵션으로 계속하십시오.',
  'plan-done': '계획 {plan}은(는) 이미 끝나서 취소할 것이 없습니다.',
  'subscription-served':
    '구독 "{subscription}"을(를) 처리하는 워커가 있습니다: {workers}. 이 구독이 없는 워커를 먼저 배포하십시오. 그러지 않으면 다시 등록됩니다. --force 옵션을 주면 그래도 종료합니다.',
  'subscription-unfinished':
    '구독 "{subscription}"에 끝나지 않은 전달이 {open}건 있습니다. 워커가 마치게 두거나 --discard 옵션으로 버리십시오. 버린 전달은 해결된 데드 레터로 남습니다.',
  'subscription-locked':
    '구독 "{subscription}"을(를) 종료하지 못했고 아무것도 바뀌지 않았습니다. 구독, 레인 또는 구독 목록을 5초 동안 다른 트랜잭션이 잠그고 있었습니다. 그 트랜잭션이 끝난 뒤 다시 시도하십시오.',
  'monitor-busy':
    '다른 모니터가 계속 살펴보고 있어서 이 모니터는 보지 못했습니다. 잠시 후 다시 시도하십시오.',
  'no-retention-policy':
    '보존 정책이 없습니다. createOutbox에 retention: { policies: [ … ] } 옵션을 지정하십시오.',
  'exported-meanwhile':
    '스트림 "{stream}"의 다음 내보내기는 위치 {first}이(가) 아니라 {expected}에서 시작합니다. 그사이 다른 사람이 내보냈습니다. 다시 시작하면 거기서 이어집니다.',
  'removed-meanwhile':
    '내보내는 동안 스트림의 이벤트 {events}건이 삭제되어 아무것도 기록하지 않았습니다. 보존 정책이 이 스트림의 내보내기를 기다리게 하고 다시 시작하십시오.',
  'transaction-open':
    '이 내보내기 전에 열린 트랜잭션이 {waitMs}밀리초 안에 끝나지 않았습니다. 그 트랜잭션이 이 범위의 이벤트를 발행할지 알 수 없어 아무것도 내보내지 않았습니다. "commitpost doctor"가 그 트랜잭션을 알려 줍니다.',
  'partition-hindered':
    '테이블을 파티션으로 나눌 수 없습니다: {found}. 아무것도 바뀌지 않았습니다. 그것을 없애고 나눈 뒤, 나뉜 테이블에 다시 만드십시오.',
  'partition-ids':
    '테이블을 파티션으로 나눌 수 없습니다. 과거의 UUID 버전 7이 아닌 ID의 이벤트가 {events}건 있습니다. 예: {examples}. 아무것도 바뀌지 않았습니다. 보존 정책이 이 이벤트를 삭제한 뒤에 나누십시오.',
  'partition-positions':
    '테이블을 파티션으로 나눌 수 없습니다. 위치 {position}부터 전달이 있습니다. 아무것도 바뀌지 않았습니다.',
  'partition-unprepared': '테이블을 준비하지 못했습니다. 아무것도 바뀌지 않았습니다. 다시 시도하십시오.',
  'partition-locked':
    '트랜잭션이나 VACUUM이 계속 쓰고 있어서 테이블을 잠글 수 없습니다. 지금까지 한 일은 남아 있고 다음 실행이 이어서 합니다. "commitpost doctor"가 가장 오래된 트랜잭션을 알려 줍니다.',
  'migration-changed':
    '마이그레이션 {version} ({name})이(가) {at}에 적용한 것과 다릅니다. 적용한 마이그레이션은 바뀌지 않습니다. 그것을 적용한 버전이나 그 이후의 commitpost를 설치하십시오.',
  'type-not-in-catalogue':
    '이벤트 {event}의 유형 "{type}"이(가) 카탈로그에 없어 페이로드에서 무엇이 민감한지 알 수 없습니다. 아무것도 내보내지 않았습니다. 유형을 카탈로그에 추가하거나 --reveal 옵션으로 모두 내보내십시오.',
  'export-unrecorded':
    '{path}에 내보냈지만 기록하는 중에 연결이 끊겨 기록되었는지 알 수 없습니다. 그 디렉터리를 "commitpost export verify"로 확인하십시오. 기록되지 않았으면 디렉터리를 지우십시오. 다음 내보내기가 같은 위치에서 시작합니다.',
  'export-unreadable': '내보내기를 읽을 수 없습니다: {path}: {code}',
  'export-missing': '확인할 내보내기가 없습니다: {path}: {code}',
  'not-an-export': '내보내기 디렉터리도 매니페스트도 아닙니다: {path}',
  'directory-unusable': '내보낼 디렉터리를 사용할 수 없습니다: {path}: {code}',
  'directory-is-file': '내보낼 디렉터리가 아니라 파일입니다: {path}',
  'directory-not-made': '내보내기 디렉터리를 만들 수 없습니다: {path}: {code}',
  'export-not-written': '내보내기를 쓸 수 없습니다: {path}: {code}',
  ...streamRefusalsKo,
}

/** For what has no words of its own here: the essence first, then what the library says. */
const REMARKS: Partial<Record<CommitpostErrorCode, string>> = {
  INVALID_STATE: '지금 상태에서는 할 수 없는 작업입니다. 아무것도 바뀌지 않았습니다.',
}

type NamedKind = Exclude<
  NotFoundError['what'],
  'matching dead letter' | 'named dead letter' | 'retention policy' | 'retention run'
>

const KINDS: Readonly<Record<NamedKind, string>> = {
  'dead letter': '데드 레터',
  delivery: '전달',
  export: '내보내기',
  plan: '계획',
  stream: '스트림',
  subscription: '구독',
}

const MOST_NAMED = 20

/** What an error of the library says, in Korean. */
export function errorInKorean(error: CommitpostError): string {
  if (error instanceof RefusedError) return filled(REFUSALS[error.reason], error.data)
  if (error instanceof NotFoundError) return notFound(error)
  if (error instanceof InvalidEventError) return invalidEvent(error)
  if (error instanceof SchemaMissingError) return schemaMissing(error)
  if (error instanceof SchemaVersionError) return schemaVersion(error)
  if (error instanceof InvalidOptionsError) return invalidOptions(error)
  if (error instanceof SubscriptionConflictError) return conflict(error)
  if (error instanceof DeadlineExceededError)
    return `${error.timeoutMs}밀리초 안에 응답이 없습니다. 이미 처리되었을 수도 있으니 다시 하기 전에 확인하십시오.`
  if (error.code === 'STORE_UNAVAILABLE')
    return `데이터베이스에 연결할 수 없거나 응답이 없습니다: ${describeError(error.cause)}\n잠시 후 다시 시도하십시오.`
  const remark = REMARKS[error.code]
  return remark === undefined ? error.message : `${remark}\n${error.message}`
}

function filled(text: string, data: RefusalData): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const value = data[name]
    return value === undefined ? whole : wordOf(name, value)
  })
}

/** The system's code for what is the matter with a file, in words where it is one that people meet. */
function wordOf(name: string, value: string): string {
  const known: Readonly<Record<string, string>> = careKo.fileReasons
  return name === 'code' && Object.hasOwn(known, value) ? `${known[value]} (${value})` : value
}

function notFound({ what, id, known }: NotFoundError): string {
  if (what === 'matching dead letter')
    return '조건에 맞으면서 다시 전달할 수 있는 데드 레터가 없습니다. 필터가 너무 좁거나, 구독이 종료되었을 수 있습니다.'
  if (what === 'named dead letter')
    return `찾을 수 없는 데드 레터가 있습니다: ${firstOf(id)}. 아무것도 계획하지 않았습니다. 번호를 잘못 입력했거나, 이미 지워진 것일 수 있습니다.`
  if (what === 'retention policy')
    return `스트림 "${id}"의 보존 정책이 없습니다. 있는 정책: ${known.join(', ')}.`
  if (what === 'retention run')
    return `보존 정책 "${id}"의 실행 기록이 없습니다. 실행 기록이 있는 정책: ${known.join(', ')}.`
  const others = known.length === 0 ? '' : ` 있는 ${KINDS[what]}: ${known.join(', ')}.`
  return `${KINDS[what]} "${id}"을(를) 찾을 수 없습니다. 잘못 입력했거나, 이 데이터베이스와 스키마에 없습니다.${others}`
}

/** As many of a list with commas as the English text names. */
function firstOf(list: string): string {
  const all = list.split(', ')
  const rest = all.length - MOST_NAMED
  return rest > 0 ? `${all.slice(0, MOST_NAMED).join(', ')} 외 ${rest}건` : list
}

function invalidOptions({ what, problems }: InvalidOptionsError): string {
  return `옵션이 올바르지 않습니다(${ownerInKorean(what)}):\n${problems.map((problem) => `- ${problemInKorean(problem)}`).join('\n')}`
}

function invalidEvent({ problems }: InvalidEventError): string {
  const lines = problems.map((problem) => `- ${eventProblemInKorean(problem)}`)
  return `이벤트가 올바르지 않아 아무것도 쓰지 않았습니다:\n${lines.join('\n')}`
}

function schemaMissing({ schema }: SchemaMissingError): string {
  return (
    `"${schema}" 스키마에 Commitpost 테이블이 없습니다. "commitpost migrate up --schema ${schema}" 또는 ` +
    `migrateUp(pool, { schema: '${schema}' })으로 만들거나, 테이블이 있는 스키마를 지정하십시오.`
  )
}

function schemaVersion({ found, needed }: SchemaVersionError): string {
  const advice =
    found > needed
      ? '이 프로그램의 commitpost 패키지를 업그레이드하십시오.'
      : '스키마를 소유한 역할로 "commitpost migrate up"을 실행하십시오.'
  return `데이터베이스의 Commitpost 스키마는 버전 ${found}인데 이 프로그램에는 버전 ${needed}이(가) 필요합니다. ${advice}`
}

function conflict({ subscription, settings: { registered, declared } }: SubscriptionConflictError): string {
  return (
    `구독 "${subscription}"은(는) 다른 설정으로 등록되어 있습니다. 등록된 설정: ${registered}, 여기의 설정: ${declared}. ` +
    '이 설정은 구독이 있는 동안 바꿀 수 없습니다. 등록된 설정을 그대로 쓰거나 새 이름을 지정하십시오.'
  )
}
