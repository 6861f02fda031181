import { careKo } from './care-ko.ts'
import { debeziumKo } from './debezium.ts'
import { errorInKorean } from './errors-ko.ts'
import { exportKo } from './export-messages.ts'
import type { Messages } from './messages.ts'
import { proofKo } from './proof-ko.ts'
import { redriveKo } from './redrive.ts'
import { retainKo } from './retain.ts'

/** Korean. */
export const ko: Messages = {
  usage: {
    unknownCommand: (given, near) =>
      `"${given}" 명령은 없습니다.${near === null ? '' : ` "commitpost ${near}" 명령을 찾으십니까?`}`,
    incomplete: (group, candidates) =>
      group === ''
        ? '명령이 빠졌습니다.'
        : `"commitpost ${group}" 뒤에 명령이 필요합니다: ${candidates.map((name) => `"${name}"`).join(', ')}`,
    unknownOption: (typed, near) =>
      `${typed} 옵션은 없습니다.${near === null ? '' : ` ${near} 옵션을 찾으십니까?`}`,
    needsValue: (name, placeholder) => `${name} 옵션에는 값이 필요합니다: ${name} ${placeholder}`,
    takesNoValue: (name) => `${name} 옵션은 값을 받지 않습니다.`,
    isRequired: (name, summary) => `${name} 값이 빠졌습니다. ${summary.ko}.`,
    mustBeShorter: (name, most, length) =>
      `${name} 값은 ${most}자를 넘을 수 없습니다. 입력한 길이: ${length}자`,
    mustBePerson: (name, policyPrefix) =>
      `${name} 값은 사람의 이름이어야 합니다. "${policyPrefix}"은(는) 정책 이름 앞에 붙습니다.`,
    mustBeWholeNumber: (name, least, most, given) =>
      `${name} 값은 ${least}부터 ${most}까지의 정수여야 합니다. 입력한 값: "${given}"`,
    mustBeRowNumber: (name, given) => `${name} 값은 목록에 표시된 번호여야 합니다. 입력한 값: "${given}"`,
    mustBeDuration: (name, given) => `${name} 값은 20s, 5m 같은 시간이어야 합니다. 입력한 값: "${given}"`,
    mustBeAtMost: (name, most, given) => `${name} 값은 ${most} 이하여야 합니다. 입력한 값: "${given}"`,
    mustBeTime: (name, given) =>
      `${name} 값은 2026-01-31, 2026-01-31T12:00Z 같은 시각이나 24h(24시간 전) 같은 기간이어야 합니다. 입력한 값: "${given}"`,
    mustBeOfYears: (name, first, last, given) =>
      `${name} 값은 ${first}년에서 ${last}년 사이의 시각이어야 합니다. 입력한 값: "${given}"`,
    mustBeLater: (name, than) => `${name} 값은 ${than} 값보다 나중이어야 합니다.`,
    mustBeEventId: (name, given) => `${name} 값은 이벤트 ID(UUID)여야 합니다. 입력한 값: "${given}"`,
    mustBeDays: (name, least, most, given) =>
      `${name} 값은 ${least}d부터 ${most}d까지의 일수여야 합니다. 입력한 값: "${given}"`,
    mustBeRate: (name, most, given) =>
      `${name} 값은 50/s 같은 초당 횟수이며 ${most} 이하여야 합니다. 입력한 값: "${given}"`,
    mustBeShortName: (name, most) => `${name} 값은 UTF-8로 ${most}바이트를 넘을 수 없습니다.`,
    mustNotContain: (name, text) => `${name} 값에는 ${text}이(가) 들어갈 수 없습니다.`,
    mustBeOneOf: (name, choices, given) =>
      `${name} 값은 ${choices.join(', ')} 중 하나여야 합니다. 입력한 값: "${given}"`,
    surplus: (text) => `"${text}"은(는) 필요 없는 인수입니다.`,
    noDatabase:
      '데이터베이스가 지정되지 않았습니다. --database postgres://user@host:port/name 옵션을 쓰거나 DATABASE_URL을 설정하십시오.',
    seeHelp: (command) => `도움말: commitpost ${command === '' ? '' : `${command} `}--help`,
  },
  help: {
    usage: '사용법:',
    about:
      'Commitpost는 트랜잭셔널 아웃박스입니다. 이벤트를 업무 데이터와 함께 기록하고 커밋 후에 전달합니다.',
    command: '명령',
    commands: '명령:',
    options: '옵션:',
    commonOptions: '공통 옵션:',
    exitCodes:
      '종료 코드: 0 성공, 1 실패, 2 잘못된 사용법, 3 이상 발견, 130 또는 143은 SIGINT 또는 SIGTERM으로 종료.',
  },
  errors: {
    title: (code) => `오류 (${code}):`,
    library: errorInKorean,
    unreachable: (address, reason) =>
      `${address} 데이터베이스에 연결할 수 없습니다: ${reason}\n서버가 실행 중인지, 호스트와 포트가 맞는지 확인하십시오.`,
    refused: (address, reason) => `${address} 데이터베이스가 연결을 거부했습니다: ${reason}`,
    invalidUrl: '데이터베이스 주소가 postgres://user@host:5432/name 형식의 URL이 아닙니다.',
    driverMissing:
      'PostgreSQL 드라이버가 설치되어 있지 않습니다. Commitpost는 프로젝트의 드라이버를 사용합니다: npm install pg',
    database: (code, reason) => `데이터베이스 오류입니다 (SQLSTATE ${code}): ${reason}`,
    rightMissing: (code, reason) =>
      `이 연결의 역할에 필요한 권한이 없습니다 (SQLSTATE ${code}): ${reason}.\n` +
      '"commitpost doctor"는 읽을 수 없는 테이블을 알려 주고, "commitpost roles sql"은 역할마다 필요한 권한을 출력합니다.',
    unexpected: (reason) => `예상하지 못한 오류입니다: ${reason}\n--debug 옵션으로 위치를 볼 수 있습니다.`,
    configNotFound: (path) => `--config 옵션으로 지정한 설정 파일이 없습니다: ${path}`,
    noConfig: (directory, names) =>
      `${directory}에 설정 파일이 없습니다. 찾아본 이름: ${names.join(', ')}. 그중 하나를 만들거나 --config 옵션으로 지정하십시오.`,
    configFailed: (path, reason) => `설정 파일 ${path}을(를) 읽을 수 없습니다: ${reason}`,
    configTypeScript: (path, node) =>
      `설정 파일 ${path}은(는) TypeScript라서 Node ${node}에서 바로 읽을 수 없습니다. JavaScript로 컴파일한 파일을 --config로 지정하거나, ` +
      'enum, namespace, 매개변수 속성이 없는 TypeScript를 바로 읽는 Node 22.18 이상을 사용하십시오.',
    configInvalid: (path, problems) =>
      `설정 파일 ${path}을(를) 사용할 수 없습니다:\n${problems.map((problem) => `- ${problem}`).join('\n')}`,
    demoSchemaExists: (schema) =>
      `데모에는 전용 스키마가 필요한데 "${schema}" 스키마가 이미 있습니다. --schema를 빼거나 새 이름을 지정하십시오.`,
  },
  migrate: {
    upToDate: (schema, version) => `"${schema}" 스키마는 버전 ${version}입니다. 할 일이 없습니다.`,
    applied: (version, name) => `적용  ${String(version).padStart(4, '0')}  ${name}`,
    migrated: (schema, version) => `"${schema}" 스키마가 버전 ${version}이(가) 되었습니다.`,
    states: {
      missing: '설치되지 않음',
      current: '최신',
      behind: '업데이트 필요',
      ahead: '이 프로그램보다 최신',
    },
    versions: (schema, found, needed) =>
      `"${schema}" 스키마: ${found === null ? '버전 없음' : `버전 ${found}`}. 이 프로그램에는 버전 ${needed}이(가) 필요합니다.`,
    columns: { version: '버전', name: '이름', applied: '적용 시각' },
    pending: '적용 전',
    partitioned: (schema, restUntil) =>
      `"${schema}" 스키마의 테이블을 파티션으로 나누었습니다. 지금까지의 행과 ${restUntil} 이전의 행은 나머지 파티션에 있습니다.`,
    madeAhead: (everyDays, madeUntil) =>
      `기간은 ${everyDays}일이며 ${madeUntil}까지 만들어 두었습니다. 다음 기간은 워커가 만듭니다.`,
    advice: {
      missing: '설치 명령: commitpost migrate up',
      behind: '업데이트 명령: commitpost migrate up',
      ahead: '여기의 commitpost 패키지를 업그레이드하십시오.',
    },
  },
  status: {
    events: (count) => `이벤트: ${count}건`,
    noSubscriptions: '등록된 구독이 없습니다. 워커가 시작될 때 등록합니다.',
    columns: {
      subscription: '구독',
      state: '상태',
      order: '순서',
      pending: '대기 중',
      processing: '처리 중',
      retrying: '재시도 예정',
      done: '완료',
      dead: '데드',
      oldest: '가장 오래된 대기',
      open: '미해결',
    },
    states: { joining: '참여 중', active: '활성', retired: '종료됨' },
    paused: '일시 중지',
    orders: { none: '-', aggregate: '애그리거트별', total: '전체' },
    deadLettersWait: (count) => `해결되지 않은 데드 레터: ${count}건. 목록: commitpost dlq list`,
    wasPaused: (subscription, operator) =>
      `"${subscription}" 구독을 일시 중지했습니다 (운영자: ${operator}). 이미 점유한 전달은 마저 처리합니다.`,
    wasResumed: (subscription, operator) => `"${subscription}" 구독을 재개했습니다 (운영자: ${operator}).`,
    wasRetired: (subscription, operator, discarded) =>
      `"${subscription}" 구독을 종료했습니다 (운영자: ${operator}). 끝나지 않아 해결된 데드 레터로 남긴 전달: ${discarded}건`,
    lettersStay: (count) =>
      `이 구독에 결정을 기다리는 데드 레터가 ${count}건 있습니다. 해결할 수는 있지만 다시 전달할 수는 없습니다.`,
    lockedStay: (count) =>
      `다른 트랜잭션이 잠근 전달이 ${count}건 있습니다. 잠금이 풀리면 워커가 해결된 데드 레터로 남깁니다.`,
    joiningWaits: (subscription, { pid, name }, age) =>
      `"${subscription}" 구독이 참여하려고 트랜잭션이 끝나기를 기다립니다: ` +
      (pid === null ? `준비된 트랜잭션 "${name}"` : `프로세스 ${pid}${name === null ? '' : ` ("${name}")`}`) +
      `${age === null ? '' : `, 열린 지 ${age}`}. 그 트랜잭션이 끝나면 참여가 끝납니다.`,
  },
  deadLetters: {
    none: '해당하는 데드 레터가 없습니다.',
    columns: {
      id: 'ID',
      failedAt: '실패 시각',
      subscription: '구독',
      event: '이벤트',
      aggregate: '애그리거트',
      attempts: '시도',
      error: '오류',
      state: '상태',
    },
    open: '미해결',
    closedBy: (resolution, operator) =>
      `${resolution === null ? '해결됨' : { retry: '재시도함', resolve: '해결됨', amend: '수정함' }[resolution]} (${operator})`,
    shown: (count, total) => `전체 ${total}건 중 ${count}건입니다.`,
    nextPage: (before) => `다음: --before ${before} 옵션을 추가하십시오.`,
    fields: {
      subscription: '구독',
      event: '이벤트',
      stream: '스트림',
      aggregate: '애그리거트',
      orderingKey: '순서 키',
      occurredAt: '발생 시각',
      failedAt: '실패 시각',
      attempts: '시도',
      error: '오류',
      state: '상태',
      redrive: '자동 재처리',
      note: '메모',
      headers: '헤더',
      payload: '페이로드',
      history: '실패한 시도',
    },
    redriveNever: '정책이 그만두었습니다. 사람의 결정을 기다립니다',
    title: (id) => `데드 레터 ${id}`,
    historyColumns: { attempt: '#', at: '시각', worker: '워커', took: '소요', error: '오류' },
    retried: (id, subscription, operator) =>
      `데드 레터 ${id}: 이벤트를 "${subscription}" 구독에 다시 전달하도록 했습니다. 운영자 ${operator}(으)로 기록했습니다.`,
    seeWhy: (eventId) => `지금 상태와 기다리는 이유: commitpost why ${eventId}`,
    resolved: (id, operator) =>
      `데드 레터 ${id}을(를) 해결했습니다. 이 이벤트는 다시 전달하지 않습니다. 운영자 ${operator}(으)로 기록했습니다.`,
    whatNext: (id) =>
      `결정: commitpost dlq retry ${id} --operator NAME 또는 commitpost dlq resolve ${id} --operator NAME --note TEXT`,
    cannotRetry: {
      unmatched: (id) =>
        `받는 구독이 없어 재시도할 수 없습니다. 구독을 추가하고 새 ID로 다시 발행하거나 해결 처리하십시오: commitpost dlq resolve ${id} --operator NAME --note TEXT`,
      retired: (id) =>
        `구독이 종료되어 재시도할 수 없습니다. 다른 구독이 받도록 새 ID로 다시 발행하거나 해결 처리하십시오: commitpost dlq resolve ${id} --operator NAME --note TEXT`,
    },
  },
  care: careKo,
  redrive: redriveKo,
  retain: retainKo,
  debezium: debeziumKo,
  proof: proofKo,
  exports: exportKo,
  worker: {
    started: (subscriptions, config) => `워커를 시작했습니다 (${config}): ${subscriptions.join(', ')}`,
    stopping: (signal) =>
      `${signal}: 처리 중인 전달을 마치고 종료합니다. 신호를 한 번 더 보내면 즉시 종료합니다.`,
    stopped: '워커를 종료했습니다.',
    outboxMissing: 'outbox는 createOutbox로 만든 것이어야 합니다',
    subscriptionsMissing: 'subscriptions는 구독이 하나 이상 있는 배열이어야 합니다',
    notAnObject: (kind) =>
      `기본 내보내기(export default)는 { outbox, subscriptions, options? } 또는 그것을 반환하는 함수여야 하는데 ${kind}입니다`,
    optionsIgnored: (options) =>
      `객체를 내보내므로 ${options.join(', ')} 옵션이 적용되지 않습니다. 함수를 내보내십시오: ({ databaseUrl, schema }) => ({ … })`,
  },
  monitor: {
    started: (config) => `${config}로 모니터를 시작했습니다.`,
    stopped: '모니터를 멈췄습니다.',
    allIsWell: '이상이 없습니다. 해당하는 규칙이 없습니다.',
    amiss: (count) => `해당하는 조건: ${count}건.`,
    told: (told, untold) => `보낸 알림: ${told}건.${untold === 0 ? '' : ` 보내지 못한 알림: ${untold}건.`}`,
    sinkFailed: (sink, error) => `${sink}에 보내지 못했습니다: ${error}`,
  },
  metrics: {
    serving: (url) => `메트릭을 ${url} 에서 제공합니다. Ctrl-C로 종료합니다.`,
    stopped: '메트릭 제공을 마쳤습니다.',
    prefix: (name, given) =>
      `${name}은(는) 영문자, 숫자, 밑줄, 콜론 2~64자여야 하며 숫자로 시작하거나 밑줄로 끝날 수 없습니다. 입력: "${given}"`,
    cannotListen: (host, port, reason) =>
      `${host}:${port} 에서 메트릭을 제공할 수 없습니다: ${reason}.\n--port와 --host로 다른 곳을 지정하십시오.`,
  },
  demo: {
    starting: (embedded) =>
      embedded ? '데모 전용 PostgreSQL 서버를 시작합니다 …' : '데이터베이스를 준비합니다 …',
    intro: (facts) => [
      'Commitpost 데모: 작은 상점',
      '',
      `초당 ${facts.rate}건의 업무 트랜잭션으로 주문을 접수하고, 결제하고, 배송합니다. 트랜잭션마다 업무 데이터와 이벤트를`,
      '한 번의 커밋으로 기록합니다. 스무 건 중 한 건은 일부러 롤백하며, 그 이벤트는 누구에게도 전달되지 않아야 합니다.',
      '세 구독이 모든 이벤트를 받습니다:',
      '  notifications  빠르고 순서가 없습니다',
      '  ledger         주문별 순서를 지키고, 자체 테이블에 이벤트마다 한 번만 기록합니다',
      '  webhooks       불안정합니다. 다섯 건 중 한 건은 처음에 실패해 재시도하고, 일부는 끝내 데드 레터가 됩니다',
      '',
      `데이터베이스  ${facts.address}, 스키마 ${facts.schema}${facts.embedded ? ' (임시, 끝나면 삭제)' : ''}`,
      '다른 터미널에서 살펴보십시오:',
      `  ${facts.status}`,
      `  ${facts.deadLetters}`,
      `  ${facts.psql}`,
      facts.seconds === null
        ? 'Ctrl-C로 종료합니다.'
        : `${facts.seconds} 후에 끝납니다. Ctrl-C로 먼저 끝낼 수 있습니다.`,
      '',
    ],
    progress: (counts) =>
      `발행 ${counts.published}  전달 ${counts.delivered}  재시도 예정 ${counts.retrying}  데드 레터 ${counts.dead}  ` +
      `지연 시간 p50 ${counts.p50} p99 ${counts.p99}`,
    draining: '주문을 멈췄습니다. 모두 전달될 때까지 기다립니다 …',
    results: '모든 이벤트의 결과입니다:',
    columns: {
      subscription: '구독',
      published: '발행',
      delivered: '= 전달',
      pending: '+ 대기 중',
      dead: '+ 데드 레터',
      holds: '',
    },
    all: '전체',
    equation: (subscriptions) => `발행 x 구독 ${subscriptions}개 = 전달 + 대기 중 + 데드 레터`,
    rolledBack: (transactions, deliveries) =>
      `일부러 롤백한 트랜잭션: ${transactions}건, 그중 전달된 이벤트: ${deliveries}건`,
    ledger: (entries, orders, violations) =>
      `원장: 주문 ${orders}건의 기록 ${entries}건, 순서 위반 ${violations}건`,
    latency: (p50, p99) => `지연 시간(발행부터 처리까지, 재시도 제외): p50 ${p50}, p99 ${p99}`,
    deadLetters: (count) => `데드 레터: ${count}건. 페이로드와 모든 실패 기록을 보관합니다.`,
    verdict: { good: '등식이 성립합니다.', bad: '등식이 성립하지 않습니다!' },
    kept: (schema, dropLine) => `테이블은 "${schema}" 스키마에 남아 있습니다. 삭제하려면: ${dropLine}`,
  },
}
