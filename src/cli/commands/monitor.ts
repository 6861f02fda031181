import type { Alert } from '../../alert/alert.ts'
import { AlertComposer } from '../../alert/alert-composer.ts'
import { resolveAlertOptions } from '../../alert/alert-options.ts'
import { type Condition, findConditions, type Seen } from '../../alert/conditions.ts'
import { type MonitorRound, see } from '../../alert/look.ts'
import type { Monitor } from '../../alert/monitor.ts'
import { textBlock } from '../../alert/text-block.ts'
import { createMasking } from '../../event/masking.ts'
import { systemClock } from '../../runtime/clock.ts'
import { systemIds } from '../../runtime/ids.ts'
import type { ExitCode } from '../cli-error.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { loadWorkerConfig } from '../load-worker-config.ts'
import { flag, text } from '../option-spec.ts'
import { aborted } from '../signals.ts'
import { quietSink, terminalSink, withTerminalSink } from '../terminal-sink.ts'
import { safeBlock } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

interface MonitorValues {
  readonly once: boolean
  readonly config: string | undefined
}

/** `commitpost monitor` */
export const monitorCommand: Command = defineCommand({
  name: 'monitor',
  summary: {
    en: 'Looks for what somebody should know, and tells them',
    ko: '알려야 할 것이 있는지 살펴보고 알립니다',
  },
  details: {
    en: 'With --once alone it looks by the default rules, prints what holds, tells nobody and changes nothing.\nWith a config (the one of "worker") it goes by the rules there and tells its sinks. Ends with 1 if anything holds.',
    ko: '--once만 주면 기본 규칙으로 살펴보고 해당하는 것을 출력할 뿐, 아무에게도 알리지 않고 아무것도 바꾸지 않습니다.\n설정 파일("worker"와 같은 것)을 주면 그 규칙을 따르고 그 대상에 알립니다. 해당하는 것이 있으면 1로 끝납니다.',
  },
  operands: {},
  options: {
    once: flag({
      en: 'Look once and end, instead of until SIGTERM or SIGINT',
      ko: 'SIGTERM 또는 SIGINT까지 계속하지 않고 한 번만 살펴봅니다',
    }),
    config: text('FILE', {
      en: 'The config file. Default without --once: commitpost.config.js, .mjs, .ts or .mts',
      ko: '설정 파일입니다. --once가 없을 때의 기본값: commitpost.config.js, .mjs, .ts 또는 .mts',
    }),
  },
  run: (invocation) => {
    const { once, config } = invocation.values
    return once && config === undefined ? lookOnly(invocation) : withConfig(invocation)
  },
})

/** By the default rules, for a person who asks: nobody is told, nothing is written. */
function lookOnly(invocation: Invocation<MonitorValues>): Promise<ExitCode> {
  return withReadyDatabase(invocation, async ({ figures }) => {
    const { rules } = resolveAlertOptions({}, quietSink)
    const now = systemClock.now()
    const seen = await see(figures, rules, { whole: true, now, rate: null })
    return printRound({ at: now, seen, conditions: findConditions(rules, seen) }, invocation)
  })
}

async function withConfig(invocation: Invocation<MonitorValues>): Promise<ExitCode> {
  const { values, globals, process, terminal, messages } = invocation
  const interruption = values.once ? null : process.untilInterrupted()
  const { path, config } = await loadWorkerConfig({ cwd: process.cwd, path: values.config, globals })
  const { alerts } = config.options ?? {}
  const given = alerts === false ? undefined : alerts
  const sink = values.once ? quietSink : terminalSink(invocation)
  const monitor: Monitor = config.outbox.monitor(withTerminalSink(given, invocation, sink))
  try {
    if (interruption === null) return printRound(await monitor.check(), invocation)
    monitor.start()
    terminal.note(messages.monitor.started(path))
    await aborted(interruption)
    return 0
  } finally {
    await monitor.stop()
    await config.close?.()
    if (interruption !== null) terminal.note(messages.monitor.stopped)
  }
}

type Looked = Pick<MonitorRound, 'at' | 'seen' | 'conditions'> &
  Partial<Pick<MonitorRound, 'told' | 'untold'>>

function printRound(round: Looked, invocation: Invocation<MonitorValues>): ExitCode {
  const { conditions, untold = [] } = round
  if (invocation.globals.json) invocation.terminal.printJson(asJson(round))
  else printForPeople(round, invocation)
  return conditions.length === 0 && untold.length === 0 ? 0 : 1
}

function printForPeople(
  { at, seen, conditions, told, untold = [] }: Looked,
  invocation: Invocation<MonitorValues>,
): void {
  const { terminal, messages, language } = invocation
  const options = resolveAlertOptions({ language }, quietSink)
  const composer = new AlertComposer({
    options,
    masking: createMasking(null),
    newId: () => systemIds.eventId(),
  })
  // Alarms are printed whether or not it was time to tell of them.
  const others = (told ?? []).filter(({ kind }) => kind === 'notice' || kind === 'recovered')
  const alarms = conditions.map((condition) => composer.alarm(condition, at, at))
  for (const alert of [...others, ...alarms, composer.report(seen, at)]) print(alert, invocation)
  const { allIsWell, amiss } = messages.monitor
  terminal.note(conditions.length === 0 ? allIsWell : amiss(conditions.length))
  if (told !== undefined) terminal.note(messages.monitor.told(told.length, untold.length))
}

function print(alert: Alert, { terminal }: Invocation<unknown>): void {
  terminal.print(safeBlock(textBlock(alert)))
}

function asJson({ at, seen, conditions, told, untold }: Looked): object {
  const key = ({ key: each }: Alert): string => each
  return {
    at: at.toISOString(),
    conditions: conditions.map(conditionJson),
    ...standing(seen),
    ...(told === undefined ? {} : { told: told.map(key), untold: (untold ?? []).map(key) }),
  }
}

function conditionJson({ rule, key, subscription, value, threshold }: Condition): object {
  return { rule, key, subscription: subscription?.name ?? null, value, threshold }
}

function standing({ letters, figures, eventsPerSecond }: Seen): object {
  return {
    deadLetters: letters,
    subscriptions: figures?.subscriptions ?? [],
    vanishedWorkers: figures?.vanished ?? [],
    eventsPerSecond,
  }
}
