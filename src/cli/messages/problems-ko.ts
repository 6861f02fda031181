import { careMeant, careWhole } from './care-problems-ko.ts'
import { catalogueMeant, catalogueWhole } from './catalogue-problems-ko.ts'
import { kafkaMeant, kafkaWhole } from './kafka-problems-ko.ts'
import { type Form, translated } from './korean-forms.ts'
import { ownerInKorean } from './owners-ko.ts'

// What is wrong with options is told by the library in English sentences of a few forms. A sentence of another form
// stays as it is.

/** What a value ought to be. */
const MEANT: readonly Form[] = [
  [/^an object$/, '객체'],
  [/^an object of handlers by event name$/, '이벤트 이름별 핸들러의 객체'],
  [/^an object: (\{.*\})$/, '$1 형태의 객체'],
  [/^a whole number from (\S+) to (\S+)$/, '$1 이상 $2 이하의 정수'],
  [/^a number from (\S+) to (\S+)$/, '$1 이상 $2 이하의 수'],
  [/^a number above 0, up to 1$/, '0보다 크고 1 이하인 수'],
  [/^(\d+) or more$/, '$1 이상'],
  [/^more than 0$/, '0보다 큰 수'],
  [/^more than 0, or null for no limit$/, '0보다 큰 수 또는 제한이 없다는 뜻의 null'],
  [/^from 0 to 1, or 'full'$/, "0 이상 1 이하의 수 또는 'full'"],
  [/^one of (.+)$/, '$1 중 하나'],
  [/^true or false$/, 'true 또는 false'],
  [/^a function$/, '함수'],
  [/^a list of functions$/, '함수의 목록'],
  [/^text that is not empty$/, '비어 있지 않은 텍스트'],
  [/^a text of at least (\d+) characters$/, '$1자 이상의 텍스트'],
  [/^at most (\d+) characters long$/, '$1자 이하'],
  [/^on one line$/, '한 줄'],
  [/^1 to (\d+) letters, digits, dots, dashes or underscores$/, '영문자, 숫자, 점, 붙임표, 밑줄로 된 1~$1자'],
  [
    /^1 to (\d+) letters, digits, dots, dashes or underscores \(the rule for Kafka topics\)$/,
    'Kafka 토픽의 규칙대로 영문자, 숫자, 점, 붙임표, 밑줄로 된 1~$1자',
  ],
  [/^a list of at least one stream name or pattern$/, '스트림 이름이나 패턴이 하나 이상인 목록'],
  [/^a list of at least one policy$/, '정책이 하나 이상인 목록'],
  [/^a list of at least one rule$/, '규칙이 하나 이상인 목록'],
  [/^a list of at least one error code$/, '오류 코드가 하나 이상인 목록'],
  [/^a list of sinks, such as (.+)$/, '알림을 보낼 곳의 목록(예: $1)'],
  [/^a sink, such as (.+), or (\{.+\})$/, '알림을 보낼 곳(예: $1) 또는 $2'],
  [/^a stream name or pattern$/, '스트림 이름이나 패턴'],
  [/^an address that begins with (\S+) or (\S+)$/, '$1 또는 $2로 시작하는 주소'],
  [/^the integration key of a PagerDuty service$/, 'PagerDuty 서비스의 통합 키'],
  [/^a store, such as (.+)$/, '저장소(예: $1)'],
  [/^a catalogue: (.+)$/, '이벤트 카탈로그($1)'],
  [/^a transport, such as (.+)$/, '전송 어댑터(예: $1)'],
  [/^a pool of clients, such as (.+)$/, '클라이언트 풀(예: $1)'],
  [/^'now', 'beginning' or a valid Date$/, "'now', 'beginning' 또는 올바른 Date"],
  [/^a (?:valid )?Date (?:of|in) the years (\d+) to (\d+)$/, '$1년에서 $2년 사이의 올바른 Date'],
  [/^a (?:valid )?Date$/, '올바른 Date'],
  [/^made with subscription\(\)$/, 'subscription()으로 만든 것'],
  [/^(\{ .+ \})$/, '$1 형태의 객체'],
  [/^have the methods (.+)$/, '다음 메서드가 있는 객체($1)'],
  [/^come from (\w+)$/, '$1(으)로 만든 것'],
  [/^one as handlers get it$/, '핸들러가 받는 것과 같은 이벤트'],
  [/^an object with aggregateId and payload$/, 'aggregateId와 payload가 있는 객체'],
  [/^a plain object of texts$/, '텍스트로만 된 평범한 객체'],
  [/^the name of an event$/, '이벤트 이름'],
  [/^a list$/, '목록'],
  [/^a list of texts$/, '텍스트의 목록'],
  [/^text$/, '텍스트'],
  [/^a string$/, '문자열'],
  [/^a string, a whole number or a bigint$/, '문자열, 정수, bigint 중 하나'],
  [/^text, a number, true or false$/, '텍스트, 수, true, false 중 하나'],
  [/^a UUID$/, 'UUID'],
  [/^an AbortSignal$/, 'AbortSignal'],
  [/^a number of milliseconds, 0 or more$/, '0 이상인 밀리초의 수'],
  [/^a pool, such as (.+), and not one client of it$/, '클라이언트 하나가 아니라 풀(예: $1)'],
  [/^a pool, such as (.+)$/, '풀(예: $1)'],
  [/^milliseconds \(1500\) or text with a unit \((.+)\)$/, '밀리초(1500) 또는 단위가 있는 텍스트($1)'],
  ...careMeant,
  ...catalogueMeant,
  ...kafkaMeant,
]

/** What a value is, where it is not shown as it was given. */
const GIVEN: readonly Form[] = [
  [/^an object$/, '객체'],
  [/^a function$/, '함수'],
  [/^a list of (\d+)$/, '항목이 $1개인 목록'],
  [/^an invalid one$/, '올바르지 않은 Date'],
]

const WHOLE: readonly Form[] = [
  ...careWhole,
  ...catalogueWhole,
  ...kafkaWhole,
  [/^there is no option (".*"); did you mean (".*")\?$/, '$1 옵션은 없습니다. $2을(를) 쓰려고 하셨습니까?'],
  [/^there is no option (".*"); known are (.+)$/, '$1 옵션은 없습니다. 있는 옵션: $2'],
  [
    /^there is no option (".*"); use maxAttempts, which counts the first attempt too$/,
    '$1 옵션은 없습니다. 첫 시도도 세는 maxAttempts를 쓰십시오',
  ],
  [
    /^there is no option (".*"); use on, which takes the events it has handlers for$/,
    '$1 옵션은 없습니다. 핸들러가 있는 이벤트를 받는 on을 쓰십시오',
  ],
  [
    /^there is no option (".*"); it is for handlers, which a relay has none of$/,
    '$1 옵션은 핸들러를 위한 것인데 릴레이에는 핸들러가 없습니다',
  ],
  [/^there is no option (".*"); use (.+)$/, '$1 옵션은 없습니다. $2을(를) 쓰십시오'],
  [/^there must be at least one handler$/, '핸들러가 하나 이상 있어야 합니다'],
  [/^there must be at least one delay$/, '지연 시간이 하나 이상 있어야 합니다'],
  [/^there must be a list of at least one subscription$/, '구독이 하나 이상인 목록이 있어야 합니다'],
  [/^options must come last$/, '옵션은 마지막에 와야 합니다'],
  [
    /^there is a handler for (".*"), which is not in the catalogue: in code it is called (".*")$/,
    '$1의 핸들러가 있지만 카탈로그에 없습니다. 코드에서는 $2입니다',
  ],
  [
    /^there is a handler for (".*"), which is not in the catalogue; did you mean (".*")\?$/,
    '$1의 핸들러가 있지만 카탈로그에 없습니다. $2을(를) 쓰려고 하셨습니까?',
  ],
  [
    /^there is a handler for (".*"), which is not in the catalogue$/,
    '$1의 핸들러가 있지만 카탈로그에 없습니다',
  ],
  [
    /^streams bring events without a handler: (.+)\. Add them, or '\*' for all others$/,
    "streams에 핸들러가 없는 이벤트가 있습니다: $1. 핸들러를 추가하거나 나머지를 받을 '*'를 추가하십시오",
  ],
  [
    /^oneAtATime needs an order: leave it out, or 'aggregate'$/,
    "oneAtATime에는 순서가 필요합니다. order를 빼거나 'aggregate'로 하십시오",
  ],
  [
    /^(oneAtATime|order 'total') means (lanes|concurrency) 1: leave .+ out$/,
    '$1이면 $2은(는) 1입니다. $2을(를) 빼십시오',
  ],
  [
    /^(lanes|onDead) (?:are|is) for ordered subscriptions: add order 'aggregate'$/,
    "$1은(는) 순서가 있는 구독을 위한 것입니다. order: 'aggregate'를 추가하십시오",
  ],
  [
    /^walBudgetBytes is for the log stream: add engine 'stream'$/,
    "walBudgetBytes는 로그 스트림을 위한 것입니다. engine: 'stream'을 추가하십시오",
  ],
  [
    /^maxAttempts counts attempts, the first included: it must be a whole number from (\S+) to (\S+), but is (.+)$/,
    'maxAttempts는 첫 시도를 포함한 시도 횟수입니다. $1 이상 $2 이하의 정수여야 하는데 $3입니다',
  ],
  [
    /^retry must come from exponential\(\), schedule\(\) or fixed\(\), or have a method 'delayMs'$/,
    "retry는 exponential(), schedule(), fixed()로 만들거나 'delayMs' 메서드가 있어야 합니다",
  ],
  [
    /^cap \((\d+) ms\) must not be shorter than base \((\d+) ms\)$/,
    'cap($1밀리초)은 base($2밀리초)보다 짧을 수 없습니다',
  ],
  [
    /^the argument is a pool, but must be an object that holds it: (.+)$/,
    '인자가 풀입니다. 풀을 담은 객체여야 합니다: $1',
  ],
  [
    /^(\S+) must be at most (\d+) bytes, (".*") is longer$/,
    '$1은(는) $2바이트 이하여야 하는데 $3은(는) 더 깁니다',
  ],
  [
    /^(\S+) is for archives: nothing is kept here$/,
    '$1은(는) 보관하는 정책을 위한 것인데 여기서는 아무것도 보관하지 않습니다',
  ],
  [
    /^(\S+) is for policies that archive: this one does not$/,
    '$1은(는) 보관하는 정책을 위한 것인데 이 정책은 보관하지 않습니다',
  ],
  [/^(\S+) is that of another policy: (.+)$/, '$1이(가) 다른 정책의 이름과 같습니다: $2'],
  [/^subscription (".*") is listed more than once$/, '구독 $1이(가) 두 번 이상 있습니다'],
  [
    /^redrive\.codes must be error codes such as (.+) or (.+), but one is (.+)$/,
    'redrive.codes는 오류 코드(예: $1, $2)여야 하는데 그중 하나가 $3입니다',
  ],
  [
    /^redrive\.codes: (.+) is what a person decided, which no policy undoes$/,
    'redrive.codes: $1은(는) 사람이 결정한 것이어서 정책이 되돌리지 않습니다',
  ],
  [
    /^(.+?):? (?:a stream name )?contains a NUL character \(U\+0000\) at offset (\d+), .+$/,
    '$1: $2번째 자리에 데이터베이스가 저장할 수 없는 NUL 문자(U+0000)가 있습니다',
  ],
  [
    /^(.+?):? (?:a stream name )?contains half of a surrogate pair at offset (\d+): .+$/,
    '$1: $2번째 자리에서 문자가 잘렸습니다(서로게이트 쌍의 절반)',
  ],
]

/** What a value is called, where that is no name of the code. */
const SUBJECTS: readonly Form[] = [
  [/^the options$/, '옵션'],
  [/^the argument$/, '인자'],
  [/^the name$/, '이름'],
  [/^the handler of (".*")$/, '$1의 핸들러'],
  [/^delay (\d+)$/, '$1번째 지연 시간'],
  [/^the first argument$/, '첫 번째 인자'],
  [/^the act$/, '작업'],
  [/^the catalogue$/, '카탈로그'],
  [/^the classifier$/, '분류 함수'],
  [/^the definitions$/, '정의'],
  [/^the entry$/, '항목'],
  [/^the event$/, '이벤트'],
  [/^the event id$/, '이벤트 ID'],
  [/^the fields$/, '필드'],
  [/^the filter$/, '필터'],
  [/^the id$/, 'ID'],
  [/^the path$/, '경로'],
  [/^the policy$/, '정책'],
  [/^the query$/, '조회 조건'],
  [/^the sink$/, '보낼 곳'],
  [/^the subscription$/, '구독'],
  [/^the upcaster$/, '업캐스터'],
  [/^the view$/, '보기 옵션'],
  [/^the work$/, '할 일'],
  [/^what (\S+) returns$/, '$1이(가) 돌려주는 것'],
  [/^a name$/, '이름'],
  [/^it$/, '값'],
  [/^topic of (".*")$/, '$1의 topic'],
  [/^(\w+) of sasl$/, 'sasl의 $1'],
  [/^envelope of the format$/, 'format의 envelope'],
  [/^source of the CloudEvents$/, 'CloudEvents의 source'],
  [/^sensitive path (.+)$/, '민감한 경로 $1'],
]

/** What a problem is about, before the sentence itself: a subscription, an event of a catalogue, an option. */
const PREFIX = /^(subscription "(?:[^"\\]|\\.)*"|(?:(?! must ).)+?): (?=\S)/
const MUST = /^(.+?) must (?:be )?(.+?)(?:, but (?:is|has) (.+))?$/s

/** A problem of options in Korean; as it is where its form is not known. */
export function problemInKorean(problem: string): string {
  return problemForm(problem) ?? problem
}

/** The same; null where its form is not known. */
export function problemForm(problem: string): string | null {
  return translated(problem, WHOLE) ?? prefixedForm(problem) ?? mustForm(problem)
}

function prefixedForm(problem: string): string | null {
  const [start = '', about = ''] = PREFIX.exec(problem) ?? []
  const rest = start === '' ? null : problemForm(problem.slice(start.length))
  return rest === null ? null : `${translated(about, SUBJECTS) ?? ownerInKorean(about)}: ${rest}`
}

function mustForm(problem: string): string | null {
  const [, name = '', meant = '', given] = MUST.exec(problem) ?? []
  const expected = translated(meant, MEANT)
  if (expected === null) return null
  const is = given === undefined ? '' : ` 지금 값: ${translated(given, GIVEN) ?? given}`
  const must = `${expected}${mustBe(expected)} 합니다.`
  return `${translated(name, SUBJECTS) ?? name}: ${must}${is}`
}

// A syllable without a final consonant takes the short form.
function mustBe(text: string): string {
  const last = text.codePointAt(text.length - 1) ?? 0
  const isSyllable = last >= 0xac_00 && last <= 0xd7_a3
  return isSyllable && (last - 0xac_00) % 28 === 0 ? '여야' : '이어야'
}
