import { systemClock } from '../../runtime/clock.ts'
import type { RedriveProgress } from '../../store/redrive-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { noteOption, operatorOption } from '../operator-options.ts'
import { flag, rate, wholeNumber } from '../option-spec.ts'
import { planOperand, share } from '../redrive-options.ts'
import { printProgress, progressPrinter } from '../redrive-progress.ts'
import { withReadyDatabase } from '../with-database.ts'

const FASTEST = 10_000
const MOST = 10_000

/** `commitpost redrive apply <plan>` */
export const redriveApplyCommand: Command = defineCommand({
  name: 'redrive apply',
  summary: {
    en: 'Delivers the dead letters of a plan again, and waits for what becomes of them',
    ko: '재처리 계획의 데드 레터를 다시 전달하고 결과를 기다립니다',
  },
  details: {
    en: 'It stops by itself when too many fail again. After a crash or Ctrl-C call it again: it goes on where it was.\nEnds with 0 when all of the plan has ended, else with 1.',
    ko: '너무 많이 다시 실패하면 스스로 멈춥니다. 중단된 뒤 다시 실행하면 이어서 진행합니다.\n계획이 모두 끝나면 0, 아니면 1로 끝납니다.',
  },
  operands: { plan: planOperand },
  options: {
    operator: operatorOption,
    note: noteOption,
    rate: rate('N/s', FASTEST, {
      en: 'At most so many a second. Default: 100/s',
      ko: '초당 최대 건수입니다. 기본값: 100/s',
    }),
    'stop-share': share({
      en: 'Stop when this share fails again, or never. Default: 50%',
      ko: '이 비율만큼 다시 실패하면 멈춥니다(never는 멈추지 않음). 기본값: 50%',
    }),
    'min-sample': wholeNumber(
      'N',
      { least: 1, most: MOST },
      {
        en: 'Do not judge before so many have ended. Default: 20',
        ko: '이만큼 끝나기 전에는 판단하지 않습니다. 기본값: 20',
      },
    ),
    'at-once': wholeNumber(
      'N',
      { least: 1, most: MOST },
      {
        en: 'How many may be on their way. Default: 100',
        ko: '동시에 전달 중일 최대 건수입니다. 기본값: 100',
      },
    ),
    resume: flag({ en: 'Go on although it stopped by itself', ko: '스스로 멈춘 계획을 이어서 진행합니다' }),
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ redrive }) => {
      const { values, globals, terminal, process } = invocation
      const stopShare = values['stop-share']
      const progress = await redrive.apply(values.plan, {
        operator: values.operator,
        note: values.note ?? '',
        resume: values.resume,
        signal: process.untilInterrupted(),
        ...(values.rate === undefined ? {} : { ratePerSecond: values.rate }),
        ...(stopShare === undefined ? {} : { stopWhenFailedShare: stopShare }),
        ...(values['min-sample'] === undefined ? {} : { minSample: values['min-sample'] }),
        ...(values['at-once'] === undefined ? {} : { atOnce: values['at-once'] }),
        ...(globals.json ? {} : { onProgress: progressPrinter(invocation, systemClock) }),
      })
      terminal.endLive()
      if (globals.json) terminal.printJson(progress)
      else printEnd(progress, invocation)
      return progress.state === 'done' ? 0 : 1
    }),
})

function printEnd(progress: RedriveProgress, invocation: Invocation<unknown>): void {
  const { terminal, messages } = invocation
  printProgress(progress, invocation)
  const { stopped, interrupted } = messages.redrive
  if (progress.state === 'stopped') terminal.note(terminal.style('warning', stopped(progress.id)))
  if (progress.state === 'applying') terminal.note(interrupted(progress.id))
}
