import type { Alert } from '../alert/alert.ts'
import { AlertComposer } from '../alert/alert-composer.ts'
import { resolveAlertOptions } from '../alert/alert-options.ts'
import { type Condition, findConditions, type Seen } from '../alert/conditions.ts'
import { type MonitorRound, see } from '../alert/look.ts'
import type { Monitor } from '../alert/monitor.ts'
import { textBlock } from '../alert/text-block.ts'
import { createMasking } from '../event/masking.ts'
import { systemClock } from '../runtime/clock.ts'
import { systemIds } from '../runtime/ids.ts'
import type { ExitCode } from './cli-error.ts'
import type { Invocation } from './command.ts'
import { loadWorkerConfig } from './load-worker-config.ts'
import { aborted } from './signals.ts'
import { quietSink, terminalSink, withTerminalSink } from './terminal-sink.ts'
import { safeBlock, safeLine } from './text/safe.ts'
import { withReadyDatabase } from './with-database.ts'

interface MonitorValues {
  readonly once: boolean
  readonly config: string | undefined
}

/** What `commitpost monitor` does. Apart from its options, since the help of all commands needs nothing of this. */
export function runMonitor(invocation: Invocation<MonitorValues>): Promise<ExitCode> {
  const { once, config } = invocation.values
  return once && config === undefined ? lookOnly(invocation) : withConfig(invocation)
}

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
  Partial<Pick<MonitorRound, 'told' | 'untold' | 'failures'>>

function printRound(round: Looked, invocation: Invocation<MonitorValues>): ExitCode {
  const { conditions, untold = [] } = round
  if (invocation.globals.json) invocation.terminal.printJson(asJson(round))
  else printForPeople(round, invocation)
  return conditions.length === 0 && untold.length === 0 ? 0 : 1
}

function printForPeople(
  { at, seen, conditions, told, untold = [], failures = [] }: Looked,
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
  if (conditions.length > 0) terminal.note(amiss(conditions.length))
  else if (untold.length === 0) terminal.note(allIsWell)
  if (told !== undefined) terminal.note(messages.monitor.told(told.length, untold.length))
  for (const { sink, error } of failures) terminal.note(messages.monitor.sinkFailed(sink, safeLine(error)))
}

function print(alert: Alert, { terminal }: Invocation<unknown>): void {
  terminal.print(safeBlock(textBlock(alert)))
}

function asJson({ at, seen, conditions, told, untold, failures }: Looked): object {
  const key = ({ key: each }: Alert): string => each
  return {
    at: at.toISOString(),
    conditions: conditions.map(conditionJson),
    ...standing(seen),
    ...(told === undefined
      ? {}
      : { told: told.map(key), untold: (untold ?? []).map(key), failures: failures ?? [] }),
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
