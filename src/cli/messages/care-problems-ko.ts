import type { Form } from './korean-forms.ts'

/** What somebody who looks after the tables ought to give: dead letters, plans, exports, proof, names of the database. */
export const careMeant: readonly Form[] = [
  [/^a whole number as text, as `(\w+)` returns it$/, '$1이(가) 돌려준, 텍스트로 된 정수'],
  [
    /^a list of 1 to (\d+) whole numbers as text, as `(\w+)` returns them$/,
    '$2이(가) 돌려준, 텍스트로 된 정수가 1개 이상 $1개 이하인 목록',
  ],
  [/^a positive whole number$/, '1 이상의 정수'],
  [/^a number above 0 and at most (\S+), or null$/, '0보다 크고 $1 이하인 수 또는 null'],
  [/^at most 100 years$/, '100년 이하'],
  [/^later than (\w+)$/, '$1보다 나중'],
  [/^before (\w+): nothing can lie between$/, '$1보다 먼저'],
  [/^the id of an export$/, '내보내기 ID'],
  [/^a UUID, as publish returns it$/, 'publish가 돌려준 UUID'],
  [/^a list of stored types$/, '저장된 유형의 목록'],
  [/^name who does this: it is recorded with the act$/, '작업과 함께 기록할, 작업하는 사람의 이름'],
  [/^a name: it is recorded with the act, .+$/, '작업과 함께 기록할, 작업하는 사람의 이름'],
  [/^the name of a person: (".*") stands before those of policies$/, '$1(으)로 시작하지 않는 사람의 이름'],
  [
    /^2 to 64 letters, digits, underscores or colons that begin with no digit and end with no underscore$/,
    '영문자, 숫자, 밑줄, 콜론으로 된 2~64자이며 숫자로 시작하거나 밑줄로 끝나지 않는 이름',
  ],
  [/^not be empty$/, '비어 있지 않은 텍스트'],
  [/^not contain a NUL character$/, 'NUL 문자(U+0000)가 없는 텍스트'],
  [/^not contain \$commitpost\$$/, '$$commitpost$$가 없는 이름'],
  [/^valid Unicode$/, '올바른 Unicode'],
]

/** What else is wrong with what they gave, or with a table of theirs. */
export const careWhole: readonly Form[] = [
  [/^give (\w+) or (\w+), not both$/, '$1과(와) $2 중 하나만 지정하십시오'],
  [
    /^a name must be at most (\d+) bytes, (".*") is longer$/,
    '이름은 $1바이트 이하여야 하는데 $2은(는) 더 깁니다',
  ],
  [/^the table has no column (\w+) \((.+)\)$/, '테이블에 $1 열($2)이 없습니다'],
  [/^its column (\w+) is (.+), but must be (.+)$/, '$1 열의 유형이 $2입니다. $3이어야 합니다'],
]
