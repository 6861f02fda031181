import type { Form } from './korean-forms.ts'

/** What a value of a catalogue ought to be. */
export const catalogueMeant: readonly Form[] = [
  [
    /^'past-tense', 'upper-snake', 'any', a RegExp or a function$/,
    "'past-tense', 'upper-snake', 'any', RegExp, 함수 중 하나",
  ],
  [
    /^list objects of a stream or type pattern and a reason, all texts$/,
    '스트림이나 유형의 패턴과 사유를 텍스트로 담은 객체의 목록',
  ],
  [
    /^1 to 255 letters, digits or \. _ : \/ - and start with a letter or digit$/,
    '문자나 숫자로 시작하고 문자, 숫자, . _ : / - 로 된 1~255자',
  ],
  [/^(PascalCase|UPPER_SNAKE_CASE), as in (\w+)$/, '$2 같은 $1 이름'],
  [/^match (\/.+\/\w*)$/, '$1에 맞는 이름'],
  [/^a whole number from 1 on$/, '1 이상의 정수'],
  [/^not be above version$/, 'version 이하'],
  [/^'event' or 'command'$/, "'event' 또는 'command'"],
  [/^a Standard Schema (\(.+\))$/, 'Standard Schema$1'],
  [/^an object of functions by version$/, '버전별 함수의 객체'],
  [/^a list of paths$/, '경로의 목록'],
  [/^keys joined by dots, as in (".+")$/, '$1처럼 점으로 이은 키'],
  [/^hidden from some of (.+)$/, '다음 중 하나 이상에서 가려지는 것($1)'],
]

/** What else is wrong with a catalogue, or with a snapshot of one. */
export const catalogueWhole: readonly Form[] = [
  [/^must be an object$/, '객체여야 합니다'],
  [
    /^name must say what happened, .+$/,
    "name은 일어난 일을 과거형 동사로 말해야 합니다(PaymentSuccess가 아니라 PaymentSucceeded). 명령은 kind: 'command'로 선언하고, 다른 규칙은 names 옵션으로 고르십시오",
  ],
  [
    /^has an unknown property (".*"); did you mean (".*")\?$/,
    '$1 속성은 없습니다. $2을(를) 쓰려고 하셨습니까?',
  ],
  [/^has an unknown property (".*"); known are (.+)$/, '$1 속성은 없습니다. 있는 속성: $2'],
  [
    /^(upcast\[.+\]) leads nowhere: steps start at no version, as there is only one$/,
    '$1은(는) 이어지는 곳이 없습니다. 버전이 하나뿐입니다',
  ],
  [
    /^(upcast\[.+\]) leads nowhere: steps start at version (\d+)$/,
    '$1은(는) 이어지는 곳이 없습니다. 버전 $2에서만 시작합니다',
  ],
  [
    /^(upcast\[.+\]) leads nowhere: steps start at versions (\d+) to (\d+)$/,
    '$1은(는) 이어지는 곳이 없습니다. 버전 $2부터 $3까지에서 시작합니다',
  ],
  [
    /^upcast lacks the step from version (.+) \(or raise oldestVersion\)$/,
    'upcast에 버전 $1에서 시작하는 단계가 없습니다. 추가하거나 oldestVersion을 올리십시오',
  ],
  [
    /^sensitive path (".*") is not in the schema: a misspelt path would hide nothing$/,
    '민감한 경로 $1이(가) 스키마에 없습니다. 잘못 쓴 경로는 아무것도 가리지 않습니다',
  ],
  [/^is called or stored as (".*"), and so is (.+)$/, '$2도 이름이나 저장된 유형이 $1입니다'],
  [/^is refused: (.*)$/s, '카탈로그가 거부합니다: $1'],
  [/^is no JSON: (.+)$/s, 'JSON이 아닙니다: $1'],
  [
    /^is not a snapshot that this version can read \(format (\d+)\)$/,
    '이 버전이 읽을 수 있는 스냅숏(형식 $1)이 아닙니다',
  ],
  [/^two fields would be called (".*")$/, '두 필드의 이름이 $1(으)로 같아집니다'],
]
