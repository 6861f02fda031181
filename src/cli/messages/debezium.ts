/** `debezium config`. */
export interface DebeziumMessages {
  readonly mustBeName: (name: string, longest: number, given: string) => string
  readonly noServer: (schemes: readonly string[]) => string
  readonly passwordFrom: (reference: string) => string
  readonly register: (name: string) => string
}

/** English. */
export const debeziumEn: DebeziumMessages = {
  mustBeName: (name, longest, given) =>
    `${name} must be letters, digits, ".", "_" and "-", at most ${longest} of them, but is '${given}'`,
  noServer: (schemes) =>
    `The database must be given as ${schemes.map((scheme) => `${scheme}//user@host:port/name`).join(' or ')}, with all of these parts.`,
  passwordFrom: (reference) =>
    `Kafka Connect takes the password from ${reference}: its worker needs config.providers for that.`,
  register: (name) =>
    `To register it: curl -X POST -H 'content-type: application/json' --data @${name}.json http://CONNECT:8083/connectors`,
}

/** Korean. */
export const debeziumKo: DebeziumMessages = {
  mustBeName: (name, longest, given) =>
    `${name}은(는) 영문자, 숫자, ".", "_", "-"로 최대 ${longest}자여야 하는데 '${given}'입니다`,
  noServer: (schemes) =>
    `데이터베이스는 ${schemes.map((scheme) => `${scheme}//user@host:port/name`).join(' 또는 ')} 형식으로 모든 부분을 적어야 합니다.`,
  passwordFrom: (reference) =>
    `Kafka Connect는 비밀번호를 ${reference}에서 읽습니다. 워커에 config.providers 설정이 필요합니다.`,
  register: (name) =>
    `등록: curl -X POST -H 'content-type: application/json' --data @${name}.json http://CONNECT:8083/connectors`,
}
