import { debeziumConnector } from '../../debezium/connector.ts'
import type { ConnectorRequest } from '../../debezium/connector-request.ts'
import type { Localized } from '../../runtime/language.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { databaseSchemes, readDebeziumSource } from '../debezium-source.ts'
import {
  choice,
  flag,
  type OptionSpec,
  text,
  type ValuesOf,
  wholeNumber,
  withDefault,
} from '../option-spec.ts'
import { usageError } from '../parse.ts'

const NAME = 'debezium config'
const DEFAULT_NAME = 'commitpost-outbox'
const DEFAULT_PREFIX = 'outbox.event'
const DEFAULT_PASSWORD = '${env:COMMITPOST_DATABASE_PASSWORD}'
const DEFAULT_BOOTSTRAP = 'localhost:9092'
const DEFAULT_SERVER_ID = 54_001
/** A slot's name is at most this long. */
const LONGEST_NAME = 63
/** With the aggregate type after it: Kafka takes 249. */
const LONGEST_PREFIX = 120

const options = {
  name: withDefault(
    kafkaName('NAME', LONGEST_NAME, {
      en: `What the connector is called; its slot and its publication too. Default: ${DEFAULT_NAME}`,
      ko: `커넥터 이름입니다. 슬롯과 퍼블리케이션 이름도 여기서 정합니다. 기본값: ${DEFAULT_NAME}`,
    }),
    DEFAULT_NAME,
  ),
  'topic-prefix': withDefault(
    kafkaName('TEXT', LONGEST_PREFIX, {
      en: `An event goes to the topic TEXT.<aggregate type>. Default: ${DEFAULT_PREFIX}`,
      ko: `이벤트는 토픽 TEXT.<애그리거트 유형>으로 갑니다. 기본값: ${DEFAULT_PREFIX}`,
    }),
    DEFAULT_PREFIX,
  ),
  host: text('HOST', {
    en: 'Where Kafka Connect finds the database. Default: the host of the address',
    ko: 'Kafka Connect에서 접속할 데이터베이스 호스트입니다. 기본값: 주소의 호스트',
  }),
  port: wholeNumber(
    'PORT',
    { least: 1, most: 65_535 },
    { en: 'The port to that. Default: the port of the address', ko: '그 포트입니다. 기본값: 주소의 포트' },
  ),
  key: withDefault<ConnectorRequest['key']>(
    choice('aggregate-id|ordering-key', ['aggregate-id', 'ordering-key'], {
      en: 'What the key of a record is; ordering-key only where every event has one of its own. Default: aggregate-id',
      ko: '레코드의 키입니다. ordering-key는 모든 이벤트에 자체 순서 키가 있을 때만 씁니다. 기본값: aggregate-id',
    }),
    'aggregate-id',
  ),
  payload: withDefault<ConnectorRequest['payload']>(
    choice('json|expanded', ['json', 'expanded'], {
      en: 'json hands it on as it is; expanded lets the router take it apart, for converters with a schema. Default: json',
      ko: 'json은 그대로 전달하고, expanded는 라우터가 스키마로 풀어 전달합니다. 기본값: json',
    }),
    'json',
  ),
  existing: flag({
    en: 'Send also the events that are in the table when the connector first starts',
    ko: '커넥터가 처음 시작할 때 이미 테이블에 있는 이벤트도 보냅니다',
  }),
  publication: withDefault<ConnectorRequest['publication']>(
    choice('filtered|disabled', ['filtered', 'disabled'], {
      en: 'disabled if you make the publication yourself, because the user does not own the table. Default: filtered',
      ko: '사용자가 테이블 소유자가 아니어서 퍼블리케이션을 직접 만들면 disabled입니다. 기본값: filtered',
    }),
    'filtered',
  ),
  'password-from': withDefault(
    text('REFERENCE', {
      en: `What Kafka Connect puts in place of the password. Default: ${DEFAULT_PASSWORD}`,
      ko: `Kafka Connect가 비밀번호로 바꿔 넣을 참조입니다. 기본값: ${DEFAULT_PASSWORD}`,
    }),
    DEFAULT_PASSWORD,
  ),
  'show-password': flag({
    en: 'Print the password of the address in clear instead',
    ko: '대신 주소에 있는 비밀번호를 그대로 출력합니다',
  }),
  bootstrap: withDefault(
    text('HOST:PORT', {
      en: `MySQL, MariaDB: the Kafka that keeps the history of the tables. Default: ${DEFAULT_BOOTSTRAP}`,
      ko: `MySQL, MariaDB: 테이블 이력을 보관할 Kafka입니다. 기본값: ${DEFAULT_BOOTSTRAP}`,
    }),
    DEFAULT_BOOTSTRAP,
  ),
  'server-id': withDefault(
    wholeNumber(
      'NUMBER',
      { least: 1, most: 4_294_967_295 },
      {
        en: `MySQL, MariaDB: a number that no other replica has. Default: ${DEFAULT_SERVER_ID}`,
        ko: `MySQL, MariaDB: 다른 복제본과 겹치지 않는 번호입니다. 기본값: ${DEFAULT_SERVER_ID}`,
      },
    ),
    DEFAULT_SERVER_ID,
  ),
}

/** `commitpost debezium config` */
export const debeziumConfigCommand: Command = defineCommand({
  name: NAME,
  summary: {
    en: 'Prints a Debezium connector that sends the events to Kafka',
    ko: '이벤트를 Kafka로 보내는 Debezium 커넥터 설정을 출력합니다',
  },
  details: {
    en: 'Connects to nothing: the address says which database it is for, also mysql://… and mariadb://…. The output is what POST /connectors of Kafka Connect takes.',
    ko: '어디에도 접속하지 않습니다. 주소로 대상 데이터베이스를 알려 주며 mysql://…, mariadb://…도 됩니다. 출력은 Kafka Connect의 POST /connectors에 그대로 쓸 수 있습니다.',
  },
  operands: {},
  options,
  run: async (invocation) => {
    const { terminal, messages, globals } = invocation
    const request = requestOf(invocation)
    terminal.printJson(debeziumConnector(request))
    if (globals.json) return 0
    if (!invocation.values['show-password']) terminal.note(messages.debezium.passwordFrom(request.password))
    terminal.note(messages.debezium.register(request.name))
    return 0
  },
})

function requestOf({ values, globals, messages }: Invocation<ValuesOf<typeof options>>): ConnectorRequest {
  const { databaseUrl, schema } = globals
  if (databaseUrl === undefined) throw usageError([messages.usage.noDatabase], NAME)
  const source = readDebeziumSource(databaseUrl)
  if (source === null) throw usageError([messages.debezium.noServer(databaseSchemes)], NAME)
  return {
    ...source,
    host: values.host ?? source.host,
    port: values.port ?? source.port,
    password: values['show-password'] ? source.password : values['password-from'],
    schema,
    name: values.name,
    topicPrefix: values['topic-prefix'],
    key: values.key,
    payload: values.payload,
    existing: values.existing,
    publication: values.publication,
    bootstrap: values.bootstrap,
    serverId: values['server-id'],
  }
}

/** A name that Kafka and Kafka Connect take. */
function kafkaName(placeholder: string, longest: number, summary: Localized): OptionSpec<string | undefined> {
  return {
    placeholder,
    summary,
    read: (given, name, messages) =>
      given === undefined || (given.length <= longest && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(given))
        ? { ok: true, value: given }
        : { ok: false, problem: messages.debezium.mustBeName(name, longest, given) },
  }
}
