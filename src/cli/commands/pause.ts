import type { ExitCode } from '../cli-error.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { noteOption, operatorOption, subscriptionOperand } from '../operator-options.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost pause <subscription>` */
export const pauseCommand: Command = defineCommand({
  name: 'pause',
  summary: {
    en: 'Stops a subscription for every worker: its events wait',
    ko: '모든 워커에서 구독을 일시 중지합니다. 이벤트는 기다립니다',
  },
  operands: { subscription: subscriptionOperand },
  options: { operator: operatorOption, note: noteOption },
  run: (invocation) => setPaused(true, invocation),
})

/** `commitpost resume <subscription>` */
export const resumeCommand: Command = defineCommand({
  name: 'resume',
  summary: { en: 'Lets a paused subscription go on', ko: '일시 중지한 구독을 재개합니다' },
  operands: { subscription: subscriptionOperand },
  options: { operator: operatorOption, note: noteOption },
  run: (invocation) => setPaused(false, invocation),
})

interface PauseValues {
  readonly subscription: string
  readonly operator: string
  readonly note: string | undefined
}

function setPaused(paused: boolean, invocation: Invocation<PauseValues>): Promise<ExitCode> {
  return withReadyDatabase(invocation, async ({ subscriptions }) => {
    const { values, globals, terminal, messages } = invocation
    const { operator, note = '' } = values
    const { name } = await subscriptions.setPaused(values.subscription, paused, operator, note)
    await subscriptions.notifyWorkers()
    const { wasPaused, wasResumed } = messages.status
    if (globals.json) terminal.printJson({ subscription: name, paused, operator, note: note || null })
    else terminal.print((paused ? wasPaused : wasResumed)(safeLine(name), safeLine(operator)))
    return 0
  })
}
