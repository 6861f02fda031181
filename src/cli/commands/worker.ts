import { jsonLineLogger, type Logger } from '../../observe/logger.ts'
import type { Worker } from '../../worker/worker.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { lineLogger, warningsOf, withoutDebug } from '../line-logger.ts'
import { loadWorkerConfig } from '../load-worker-config.ts'
import { text } from '../option-spec.ts'
import { aborted } from '../signals.ts'
import { withTerminalSink } from '../terminal-sink.ts'
import type { WorkerConfig } from '../worker-config.ts'

/** `commitpost worker` */
export const workerCommand: Command = defineCommand({
  name: 'worker',
  summary: {
    en: 'Runs the subscriptions of a config file until SIGTERM or SIGINT',
    ko: '설정 파일의 구독을 SIGTERM 또는 SIGINT까지 실행합니다',
  },
  details: {
    en: 'The default export of the file is { outbox, subscriptions, options?, close? }, or a function of\n({ databaseUrl, schema }) that returns it. The first signal finishes what is in hand, the second ends at once.',
    ko: '파일의 기본 내보내기는 { outbox, subscriptions, options?, close? } 또는 ({ databaseUrl, schema })를 받아\n그것을 반환하는 함수입니다. 첫 신호는 처리 중인 전달을 마치고, 두 번째 신호는 즉시 종료합니다.',
  },
  operands: {},
  options: {
    config: text('FILE', {
      en: 'The config file. Default: commitpost.config.js, .mjs, .ts or .mts',
      ko: '설정 파일입니다. 기본값: commitpost.config.js, .mjs, .ts 또는 .mts',
    }),
  },
  run: async (invocation) => {
    const { values, globals, process, terminal, messages } = invocation
    const interruption = process.untilInterrupted()
    const { path, config } = await loadWorkerConfig({ cwd: process.cwd, path: values.config, globals })
    const worker = makeWorker(config, invocation)
    // In JSON the worker's own log says the same.
    const say = (line: string): void => (globals.json ? undefined : terminal.print(line))
    try {
      await worker.start()
      say(
        messages.worker.started(
          config.subscriptions.map(({ name }) => name),
          path,
        ),
      )
      await aborted(interruption)
      say(messages.worker.stopping(String(interruption.reason)))
    } finally {
      await worker.stop()
      await config.close?.()
    }
    say(messages.worker.stopped)
    return 0
  },
})

function makeWorker(
  { outbox, subscriptions, options }: WorkerConfig,
  invocation: Invocation<unknown>,
): Worker {
  return outbox.worker(subscriptions, {
    ...options,
    logger: options?.logger ?? loggerOf(invocation),
    // Where the config brings a log of its own, alerts go there unless it says otherwise.
    ...(options?.logger !== undefined || options?.alerts === false || invocation.globals.json
      ? {}
      : { alerts: withTerminalSink(options?.alerts, invocation) }),
    // The program has its own: two would take the first signal for the second.
    handleSignals: false,
  })
}

function loggerOf({ terminal, formats, globals }: Invocation<unknown>): Logger {
  if (globals.json) {
    const logger = jsonLineLogger((line) => terminal.print(line))
    return globals.debug ? logger : withoutDebug(logger)
  }
  const logger = lineLogger({ terminal, formats })
  return globals.debug ? logger : warningsOf(logger)
}
