import type { Form } from './korean-forms.ts'

/** What an option of Kafka's adapters ought to be. */
export const kafkaMeant: readonly Form[] = [
  [/^a function that makes one, (.+)$/, '프로듀서를 만드는 함수($1)'],
  [/^a name, names by event type, or a function$/, '이름, 이벤트 유형별 이름, 함수 중 하나'],
  [/^name at least one event type$/, '이벤트 유형이 하나 이상 있는 객체'],
  [/^'payload', 'envelope', (\{ .+ \}) or (\{ .+ \})$/, "'payload', 'envelope', $1, $2 중 하나"],
  [/^a list of at least one 'host:port'$/, "'host:port'가 하나 이상인 목록"],
  [/^a list of at least one name or RegExp$/, '이름이나 RegExp가 하나 이상인 목록'],
  [/^true, false or an object$/, 'true, false 또는 객체'],
  [/^a name that Kafka can have, with \{topic\} in it or not$/, 'Kafka 토픽 이름({topic}을 넣을 수 있음)'],
]

/** What else is wrong with options of Kafka's adapters. */
export const kafkaWhole: readonly Form[] = [
  [/^there is no option (".*"); give it to (.+)$/, '$1 옵션은 없습니다. $2에 지정하십시오'],
  [/^there is no (\{\w+\}); known are (.+)$/, '$1은(는) 없습니다. 있는 것: $2'],
  [
    /^it must be idempotent, or its own retries could write twice and out of order: (.+)$/,
    '프로듀서는 멱등이어야 합니다. 그러지 않으면 스스로 재시도하다가 두 번 쓰거나 순서를 바꿀 수 있습니다: $1',
  ],
  [
    /^fromBeginning is for kafkajs; this client takes it in its own configuration: (.+)$/,
    'fromBeginning은 kafkajs를 위한 것입니다. 이 클라이언트에서는 클라이언트의 설정에 지정하십시오: $1',
  ],
]
