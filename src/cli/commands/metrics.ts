import { DEFAULT_PREFIX, prefixProblem } from '../../inspect/metric-prefix.ts'
import type { ExitCode } from '../cli-error.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { flag, type OptionSpec, text, wholeNumber } from '../option-spec.ts'
import type { Database } from '../services.ts'
import { aborted } from '../signals.ts'
import { withReadyDatabase } from '../with-database.ts'

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_PORT = 9464
/** What a person who asks once may wait for: more than a scrape each few seconds. */
const FIGURES = { countLimit: 100_000, timeoutMs: 30_000 } as const

const prefix: OptionSpec<string | undefined> = {
  placeholder: 'NAME',
  summary: {
    en: `What every metric's name begins with. Default: ${DEFAULT_PREFIX}`,
    ko: `모든 메트릭 이름의 앞부분입니다. 기본값: ${DEFAULT_PREFIX}`,
  },
  read: (given, name, messages) =>
    prefixProblem(name, given) === null
      ? { ok: true, value: given }
      : { ok: false, problem: messages.metrics.prefix(name, given ?? '') },
}

interface MetricsValues {
  readonly prefix: string | undefined
  readonly port: number | undefined
  readonly host: string | undefined
  readonly once: boolean
}

/** `commitpost metrics` */
export const metricsCommand: Command = defineCommand({
  name: 'metrics',
  summary: {
    en: 'Serves figures of the tables for Prometheus, until SIGTERM or SIGINT',
    ko: '테이블의 수치를 Prometheus에 제공합니다(SIGTERM 또는 SIGINT까지)',
  },
  details: {
    en: 'What workers count (durations, results, lease losses) is known to their own processes: see docs/metrics.md.\nWith --json the figures are printed once.',
    ko: '워커가 세는 값(처리 시간, 결과, 점유 상실)은 각 워커 프로세스가 제공합니다: docs/metrics.md 참고.\n--json은 수치를 한 번 출력합니다.',
  },
  operands: {},
  options: {
    prefix,
    port: wholeNumber(
      'N',
      { least: 0, most: 65_535 },
      {
        en: `The port to serve them at; 0 takes any that is free. Default: ${DEFAULT_PORT}`,
        ko: `제공할 포트입니다. 0이면 비어 있는 포트를 씁니다. 기본값: ${DEFAULT_PORT}`,
      },
    ),
    host: text('ADDRESS', {
      en: `The address to serve them at. Default: ${DEFAULT_HOST}, this machine only`,
      ko: `제공할 주소입니다. 기본값: ${DEFAULT_HOST}(이 컴퓨터에서만)`,
    }),
    once: flag({
      en: 'Print them once instead of serving them',
      ko: '제공하지 않고 한 번만 출력합니다',
    }),
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async ({ gauges }) => {
      const { terminal, globals } = invocation
      if (globals.json) {
        const figures = await gauges.readGauges(FIGURES)
        terminal.printJson({ schema: globals.schema, ...figures })
        return 0
      }
      return run(gauges, invocation)
    }),
})

async function run(gauges: Database['gauges'], invocation: Invocation<MetricsValues>): Promise<ExitCode> {
  const { values, terminal, messages, process } = invocation
  const { prefix: given = DEFAULT_PREFIX, host = DEFAULT_HOST, port = DEFAULT_PORT } = values
  const { prometheusMetrics } = await import('../../inspect/prometheus-metrics.ts')
  if (values.once) {
    const once = prometheusMetrics({ store: gauges, prefix: given, timeoutMs: FIGURES.timeoutMs })
    terminal.print((await once.render()).trimEnd())
    return 0
  }
  const metrics = prometheusMetrics({ store: gauges, prefix: given })
  const interruption = process.untilInterrupted()
  const { serveMetrics } = await import('../metrics-server.ts')
  await using server = await serveMetrics(metrics, { host, port })
  terminal.print(messages.metrics.serving(server.url))
  await aborted(interruption)
  terminal.print(messages.metrics.stopped)
  return 0
}
