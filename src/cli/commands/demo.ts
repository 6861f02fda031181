import { systemClock } from '../../runtime/clock.ts'
import { systemRandom } from '../../runtime/random.ts'
import { type Command, defineCommand } from '../command.ts'
import { duration, rate } from '../option-spec.ts'

const DEFAULT_RATE = 50
const HIGHEST_RATE = 5_000

/** `commitpost demo`, which is also `npm start`. */
export const demoCommand: Command = defineCommand({
  name: 'demo',
  summary: {
    en: 'Runs a small shop on a database of its own and shows what becomes of its events',
    ko: '전용 데이터베이스에서 작은 상점을 실행하며 이벤트가 전달되는 모습을 보여 줍니다',
  },
  details: {
    en: 'Without --database or DATABASE_URL it starts a PostgreSQL server of its own, which is gone at the end. On a\ndatabase of yours it works in a new schema and leaves it there. Ends with 0 only if every event is accounted for.',
    ko: '--database나 DATABASE_URL이 없으면 전용 PostgreSQL 서버를 시작하고 끝나면 지웁니다. 지정한 데이터베이스에서는\n새 스키마를 만들어 사용하고 남겨 둡니다. 모든 이벤트의 결과가 맞을 때만 0으로 끝납니다.',
  },
  operands: {},
  options: {
    for: duration('TIME', {
      en: 'How long to sell, such as 20s. Default: until Ctrl-C',
      ko: '판매할 시간입니다(예: 20s). 기본값: Ctrl-C까지',
    }),
    rate: rate('N/s', HIGHEST_RATE, {
      en: `Business transactions per second. Default: ${DEFAULT_RATE}/s`,
      ko: `초당 업무 트랜잭션 수입니다. 기본값: ${DEFAULT_RATE}/s`,
    }),
  },
  run: async (invocation) => {
    const { values, globals, services, process } = invocation
    const { demoReporter } = await import('../demo/report.ts')
    const report = demoReporter(invocation)
    const signal = process.untilInterrupted()
    report.starting(globals.databaseUrl === undefined)
    await using database = await services.openDemoDatabase({
      url: globals.databaseUrl ?? null,
      schema: globals.schemaGiven ? globals.schema : null,
    })
    const perSecond = values.rate ?? DEFAULT_RATE
    const forMs = values.for ?? null
    report.intro(database, perSecond, forMs)
    const { runDemo } = await import('../demo/run-demo.ts')
    const result = await runDemo({
      database,
      rate: perSecond,
      forMs,
      clock: systemClock,
      random: systemRandom,
      signal,
      onProgress: report.progress,
      onDraining: report.draining,
    })
    report.result(result, database)
    return result.holds ? 0 : 1
  },
})
