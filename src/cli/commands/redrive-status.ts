import { type Command, defineCommand } from '../command.ts'
import { planOperand } from '../redrive-options.ts'
import { printProgress } from '../redrive-progress.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost redrive status <plan>` */
export const redriveStatusCommand: Command = defineCommand({
  name: 'redrive status',
  summary: {
    en: 'Shows how far a plan is and what became of its dead letters',
    ko: '재처리 계획의 진행과 결과를 보여 줍니다',
  },
  operands: { plan: planOperand },
  options: {},
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ redrive }) => {
      const { values, globals, terminal } = invocation
      const progress = await redrive.status(values.plan)
      if (globals.json) terminal.printJson(progress)
      else printProgress(progress, invocation)
      return 0
    }),
})
