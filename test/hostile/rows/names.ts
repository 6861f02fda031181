import { type Group, type Refusal, refused, wrong } from '../row.ts'

const named = (
  does: string,
  code: 'INVALID_EVENT' | 'UNKNOWN_EVENT_TYPE',
  says: string,
  name: unknown,
): Refusal =>
  refused(`publish(tx, ${does}, …)`, code, says, (scene) =>
    scene.inTransaction((tx) =>
      scene.outbox.publish(tx, wrong(name), wrong({ aggregateId: 1, payload: {} })),
    ),
  )

export const names: Group = {
  title: 'Names of events',
  rows: [
    named('undefined', 'INVALID_EVENT', 'type: must be the name of an event, but is undefined', undefined),
    named('5', 'INVALID_EVENT', 'type: must be the name of an event, but is 5', 5),
    named('Symbol()', 'INVALID_EVENT', 'type: must be the name of an event', Symbol('x')),
    named("''", 'UNKNOWN_EVENT_TYPE', '"" is not in the catalogue', ''),
    named("'OrderPlace'", 'UNKNOWN_EVENT_TYPE', 'did you mean "OrderPlaced"?', 'OrderPlace'),
    named(
      "'ORDER_FILED', its stored name",
      'UNKNOWN_EVENT_TYPE',
      'in code it is called "OrderFiled"',
      'ORDER_FILED',
    ),
    named("'__proto__'", 'UNKNOWN_EVENT_TYPE', '"__proto__" is not in the catalogue', '__proto__'),
    named("'toString'", 'UNKNOWN_EVENT_TYPE', '"toString" is not in the catalogue', 'toString'),
    named('a text of 1 MB', 'UNKNOWN_EVENT_TYPE', 'is not in the catalogue', 'x'.repeat(1_000_000)),
  ],
}
