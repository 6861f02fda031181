import { type Command, defineCommand } from '../command.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost audit verify` */
export const auditVerifyCommand: Command = defineCommand({
  name: 'audit verify',
  summary: {
    en: 'Follows the hashes of the operator log and names the first broken link',
    ko: '운영자 기록의 해시 사슬을 확인하고 처음 끊어진 곳을 알려 줍니다',
  },
  details: {
    en: 'Ends with 0 if the chain holds and with 3 if it does not. The hash it prints, kept elsewhere, shows later that\nnothing up to that entry was changed.',
    ko: '사슬이 온전하면 0, 아니면 3으로 끝납니다. 출력된 해시를 다른 곳에 보관하면 그 항목까지 바뀌지 않았음을 나중에\n확인할 수 있습니다.',
  },
  operands: {},
  options: {},
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ proof }) => {
      const { terminal, globals, messages, formats } = invocation
      const { audit } = messages.proof
      const report = await proof.audit()
      const { holds, entries, hash, broken } = report
      if (globals.json) {
        terminal.printJson({ schema: globals.schema, ...report })
      } else if (broken === null) {
        terminal.print(terminal.style('good', audit.holds(formats.count(entries))))
        terminal.print(audit.hash(hash))
      } else {
        terminal.print(terminal.style('bad', audit.broken(broken.entry, broken.id, broken.problem)))
        terminal.print(audit.lastGood(hash))
      }
      return holds ? 0 : 3
    }),
})
