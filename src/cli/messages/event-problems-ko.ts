import { type EventProblem, type EventProblemCode, placeOf } from '../../event/errors.ts'
import { type Form, translated } from './korean-forms.ts'
import { problemForm } from './problems-ko.ts'

/** What is wrong with an event, about what stands before it: the place in the event. */
const FORMS: readonly Form[] = [
  [
    /^is (\d+) bytes; the limit is (\d+) bytes \(option maxPayloadBytes\)\. Store it elsewhere .+$/,
    '$1바이트입니다. 한도는 $2바이트입니다(maxPayloadBytes 옵션). 다른 곳에 저장하고 그 주소를 발행하십시오',
  ],
  [
    /^is over (\d+) bytes; the limit is (\d+) bytes \(option maxPayloadBytes\)\. Store it elsewhere .+$/,
    '$1바이트를 넘습니다. 한도는 $2바이트입니다(maxPayloadBytes 옵션). 다른 곳에 저장하고 그 주소를 발행하십시오',
  ],
  [/^is undefined, which is no JSON; use null$/, 'undefined는 JSON이 아닙니다. null을 쓰십시오'],
  [
    /^is undefined inside an array, which JSON would turn into null$/,
    '배열 안의 undefined는 JSON에서 null이 됩니다',
  ],
  [
    /^is a bigint, which JSON cannot hold; send it as a string$/,
    'bigint는 JSON에 담을 수 없습니다. 문자열로 보내십시오',
  ],
  [/^is (?:a )?(\S+), which JSON cannot hold$/, '$1은(는) JSON에 담을 수 없습니다'],
  [
    /^is a number beyond (2\^53 - 1), which JavaScript rounds; send it as a string$/,
    '$1을(를) 넘는 수는 JavaScript가 반올림합니다. 문자열로 보내십시오',
  ],
  [
    /^is a Map or Set, which JSON would turn into \{\}; send an object or an array$/,
    'Map과 Set은 JSON에서 {}가 됩니다. 객체나 배열로 보내십시오',
  ],
  [
    /^is an Error, whose message JSON would drop; send the fields you need$/,
    'Error의 메시지는 JSON에서 사라집니다. 필요한 필드를 보내십시오',
  ],
  [/^is binary data; send it as base64 text$/, '바이너리 데이터입니다. base64 텍스트로 보내십시오'],
  [/^is an invalid Date$/, '올바르지 않은 Date입니다'],
  [
    /^is an object of a class without own fields, which JSON would turn into \{\}; give it a toJSON method$/,
    '자체 필드가 없는 클래스의 객체는 JSON에서 {}가 됩니다. toJSON 메서드를 추가하십시오',
  ],
  [/^contains itself$/, '자기 자신을 포함합니다'],
  [/^is nested more than (\d+) levels deep$/, '$1단계보다 깊이 중첩되었습니다'],
  [
    /^has a key that contains a NUL character \(U\+0000\) at offset (\d+), .+$/,
    '키의 $1번째 자리에 데이터베이스가 저장할 수 없는 NUL 문자(U+0000)가 있습니다',
  ],
  [
    /^has a key that contains half of a surrogate pair at offset (\d+): .+$/,
    '키의 $1번째 자리에서 문자가 잘렸습니다(서로게이트 쌍의 절반)',
  ],
  [/^could not be read: (.*)$/s, '읽을 수 없습니다: $1'],
  [/^could not be made: (.*)$/s, '만들 수 없습니다: $1'],
  [
    /^is not valid \(a sensitive field: the reason is withheld\)$/,
    '올바르지 않은 값입니다(민감한 필드여서 이유를 밝히지 않습니다)',
  ],
  [/^the schema itself failed: (.*)$/s, '스키마 자체가 실패했습니다: $1'],
  [
    /^the schema answered neither with a value nor with issues, as Standard Schema asks$/,
    '스키마가 Standard Schema와 달리 값도 문제도 답하지 않았습니다',
  ],
  [
    /^(.*) when read back from JSON, as handlers will; the schema must accept the stored form$/s,
    '$1(핸들러처럼 JSON에서 다시 읽었을 때). 스키마는 저장된 형태도 받아야 합니다',
  ],
  [
    /^(".*") is not in the catalogue: define it with defineEvents$/,
    '$1이(가) 카탈로그에 없습니다. defineEvents로 정의하십시오',
  ],
  [
    /^(".*") is not in the catalogue: did you mean (".*")\?$/,
    '$1이(가) 카탈로그에 없습니다. $2을(를) 쓰려고 하셨습니까?',
  ],
  [
    /^(".*") is not in the catalogue: in code it is called (".*")$/,
    '$1이(가) 카탈로그에 없습니다. 코드에서는 $2입니다',
  ],
  [
    /^(".*") is not in the catalogue, so nobody can say what its payload must be$/,
    '$1이(가) 카탈로그에 없어 페이로드가 어때야 하는지 알 수 없습니다',
  ],
  [/^(".*") is refused by the catalogue: (.*)$/s, '카탈로그가 $1을(를) 거부합니다: $2'],
  [/^has no property (".*"); did you mean (".*")\?$/, '$1 속성은 없습니다. $2을(를) 쓰려고 하셨습니까?'],
  [/^has no property (".*"); known are (.+)$/, '$1 속성은 없습니다. 있는 속성: $2'],
  [
    /^has a name other than 1 to (\d+) letters, digits, dots, dashes or underscores$/,
    '이름은 영문자, 숫자, 점, 붙임표, 밑줄로 된 1~$1자여야 합니다',
  ],
  [
    /^has a name that JavaScript does not treat as a plain key$/,
    'JavaScript가 보통 키로 다루지 않는 이름입니다',
  ],
  [
    /^has a name that the envelope uses itself; choose another than (".*")$/,
    '봉투가 쓰는 이름입니다. $1이(가) 아닌 이름을 쓰십시오',
  ],
  [
    /^contains a line break, which would split the header on its way$/,
    '줄바꿈이 있어 전달 중에 헤더가 나뉩니다',
  ],
  [/^are (\d+); at most (\d+) are allowed$/, '$1개입니다. $2개까지 쓸 수 있습니다'],
  [
    /^are (\d+) bytes together; at most (\d+) are allowed$/,
    '모두 $1바이트입니다. $2바이트까지 쓸 수 있습니다',
  ],
  [/^threw, which it must not: (.*)$/s, '오류를 던졌습니다. 던지면 안 됩니다: $1'],
  [
    /^is that of (\[\d+\]) too: each event needs an id of its own$/,
    '$1의 것과 같습니다. 이벤트마다 ID가 달라야 합니다',
  ],
]

/** For what has no form: the essence, before what the library says. */
const ESSENCE: Readonly<Record<Exclude<EventProblemCode, 'PAYLOAD_INVALID'>, string>> = {
  INVALID_EVENT: '올바르지 않은 값입니다',
  UNKNOWN_EVENT_TYPE: '카탈로그에 없는 이벤트 유형입니다',
  EVENT_REFUSED: '카탈로그가 거부하는 이벤트입니다',
  PAYLOAD_NOT_STORABLE: '데이터베이스에 저장할 수 없는 값입니다',
  PAYLOAD_TOO_LARGE: '페이로드가 너무 큽니다',
}

const MADE = /^made by the definition of (\S+) (.+)$/s

/** One thing that is wrong with an event, with its place: all that the English sentence says. */
export function eventProblemInKorean(problem: EventProblem): string {
  const [, definition, rest] = MADE.exec(problem.message) ?? []
  const place =
    definition === undefined ? placeOf(problem) : `${placeOf(problem)}(${definition}의 정의가 만든 값)`
  const message = rest ?? problem.message
  const said = translated(message, FORMS)
  if (said !== null) return `${place}: ${said}`
  // What a schema says against a payload is said in the words of its library.
  if (problem.code === 'PAYLOAD_INVALID') return `${place}: ${message}`
  return problemForm(`${place} ${message}`) ?? `${place}: ${ESSENCE[problem.code]} (${message})`
}
