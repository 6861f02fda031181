import type { ChainReport } from '../../store/proof-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import type { AuditMessages } from '../messages/proof.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost audit verify` */
export const auditVerifyCommand: Command = defineCommand({
  name: 'audit verify',
  summary: {
    en: 'Follows the hashes of the operator log and of the exports, and names the first broken link',
    ko: '운영자 기록과 내보내기 기록의 해시 사슬을 확인하고 처음 끊어진 곳을 알려 줍니다',
  },
  details: {
    en: 'Ends with 0 if both chains hold and with 3 if one does not. The hashes it prints, kept elsewhere, show later that\nnothing up to those entries was changed.',
    ko: '두 사슬이 모두 온전하면 0, 아니면 3으로 끝납니다. 출력된 해시를 다른 곳에 보관하면 그 항목까지 바뀌지 않았음을 나중에\n확인할 수 있습니다.',
  },
  operands: {},
  options: {},
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ proof }) => {
      const { terminal, globals, messages } = invocation
      const { audit } = messages.proof
      const report = await proof.audit()
      if (globals.json) {
        terminal.printJson({ schema: globals.schema, ...report })
      } else {
        printChain(report, audit, invocation)
        const { exportsHold: holds, exportsHash: hash, exportsBroken: broken, lastGood } = audit
        printChain(report.exports, { holds, hash, broken, lastGood }, invocation)
      }
      return report.holds ? 0 : 3
    }),
})

type ChainTexts = Pick<AuditMessages, 'holds' | 'hash' | 'broken' | 'lastGood'>

function printChain(
  { entries, hash, broken }: ChainReport,
  texts: ChainTexts,
  { terminal, formats }: Invocation<unknown>,
): void {
  if (broken === null) {
    terminal.print(terminal.style('good', texts.holds(formats.count(entries))))
    terminal.print(texts.hash(hash))
  } else {
    terminal.print(terminal.style('bad', texts.broken(broken.entry, broken.id, broken.problem)))
    terminal.print(texts.lastGood(hash))
  }
}
