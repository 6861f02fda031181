import { resolve } from 'node:path'
import type { ExportProgress } from '../../retain/export-options.ts'
import { LONGEST_AGE } from '../../runtime/duration.ts'
import type { ExportRecord } from '../../store/export-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { catalogueOption, loadCatalogue } from '../load-catalogue.ts'
import { noteOption, operatorOption } from '../operator-options.ts'
import { duration, flag, requiredText, wholeNumber } from '../option-spec.ts'
import { usageError } from '../parse.ts'
import { pointInTime } from '../point-in-time.ts'
import { safeLine } from '../text/safe.ts'
import { withReadyDatabase } from '../with-database.ts'

const MOST_FILE_EVENTS = 500_000
const LONGEST_WAIT = '1d'

/** `commitpost export run` */
export const exportRunCommand: Command = defineCommand({
  name: 'export run',
  summary: {
    en: 'Writes what is new in a stream to compressed files with a manifest of hashes',
    ko: '스트림의 새 이벤트를 해시 매니페스트와 함께 압축 파일로 내보냅니다',
  },
  details: {
    en: 'It goes on where the last export of the stream ended, in a new directory of its own. Fields that the catalogue calls\nsensitive are masked, so --config says which; --reveal exports everything.',
    ko: '그 스트림의 마지막 내보내기 다음부터 새 디렉터리에 씁니다. --config의 카탈로그에서 민감하다고 한 필드를\n가리며, --reveal은 모두 내보냅니다.',
  },
  operands: {},
  options: {
    stream: requiredText('STREAM', { en: 'Which stream', ko: '내보낼 스트림입니다' }),
    directory: requiredText('DIR', {
      en: 'An existing directory: the export makes a new one in it',
      ko: '이미 있는 디렉터리입니다. 그 안에 새 디렉터리를 만듭니다',
    }),
    until: pointInTime('TIME', {
      en: 'Only events published before it: 2026-01-31, 2026-01-31T12:00Z, or 24h for 24 hours ago',
      ko: '이 시각 전에 발행된 이벤트만: 2026-01-31, 2026-01-31T12:00Z, 24h(24시간 전)',
    }),
    'older-than': duration(
      'TIME',
      {
        en: "Only events published longer ago than this, by the database's clock: 7d",
        ko: '데이터베이스 시계로 이보다 오래전에 발행된 이벤트만: 7d',
      },
      LONGEST_AGE,
    ),
    'max-file-events': wholeNumber(
      'N',
      { least: 1, most: MOST_FILE_EVENTS },
      {
        en: 'The most events of one file. Default: 100000',
        ko: '파일 하나의 최대 이벤트 수입니다. 기본값: 100000',
      },
    ),
    wait: duration(
      'TIME',
      {
        en: 'How long to wait for transactions that are open. Default: 30s',
        ko: '열려 있는 트랜잭션을 기다릴 시간입니다. 기본값: 30s',
      },
      LONGEST_WAIT,
    ),
    config: catalogueOption,
    reveal: flag({
      en: 'Write also what is sensitive. It is recorded with the act',
      ko: '민감한 값도 씁니다. 작업과 함께 기록됩니다',
    }),
    operator: operatorOption,
    note: noteOption,
  },
  run: async (invocation) => {
    const { values, globals, terminal, messages, process } = invocation
    const { until, 'older-than': olderThan, 'max-file-events': maxFileEvents, wait, reveal } = values
    if (until !== undefined && olderThan !== undefined) {
      throw usageError([messages.exports.notBoth], 'export run')
    }
    if (values.config === undefined && !reveal) {
      throw usageError([messages.exports.needsCatalogue], 'export run')
    }
    const known = await loadCatalogue(values.config, invocation)
    return withReadyDatabase(invocation, async (database) => {
      const signal = process.untilInterrupted()
      const running = database.exportsBy(known).run({
        stream: values.stream,
        directory: resolve(process.cwd, values.directory),
        reveal,
        operator: values.operator,
        note: values.note ?? '',
        signal,
        ...(until === undefined ? {} : { until }),
        ...(olderThan === undefined ? {} : { olderThan }),
        ...(maxFileEvents === undefined ? {} : { maxFileEvents }),
        ...(wait === undefined ? {} : { waitMs: wait }),
        ...(globals.json ? {} : { onProgress: progressPrinter(invocation) }),
      })
      const exported = await untilAborted(running, signal)
      terminal.endLive()
      if (exported === 'interrupted') {
        terminal.note(messages.exports.interrupted)
        return 1
      }
      if (globals.json) terminal.printJson({ action: 'export', exported })
      else printExported(exported, values.stream, invocation)
      return 0
    })
  },
})

async function untilAborted<Result>(
  running: Promise<Result>,
  signal: AbortSignal,
): Promise<Result | 'interrupted'> {
  try {
    return await running
  } catch (error) {
    if (signal.aborted) return 'interrupted'
    throw error
  }
}

function progressPrinter({
  terminal,
  messages,
  formats,
}: Invocation<unknown>): (progress: ExportProgress) => void {
  const { count } = formats
  return ({ events, of, files }) =>
    terminal.printLive(messages.exports.progress(count(events), count(of), count(files)))
}

function printExported(
  exported: ExportRecord | null,
  stream: string,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const texts = messages.exports
  if (exported === null) {
    terminal.note(texts.nothing(safeLine(stream)))
    return
  }
  const { events, firstPosition, lastPosition, exportedBy, location } = exported
  const who = safeLine(exportedBy)
  terminal.print(texts.exported(safeLine(stream), formats.count(events), firstPosition, lastPosition, who))
  terminal.print(texts.location(safeLine(location)))
  terminal.note(texts.whatNext(safeLine(location)))
}
