import type { ExportRecord } from '../../store/export-store.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { text } from '../option-spec.ts'
import { DEFAULT_LIMIT, pageOptions } from '../page-options.ts'
import { safeLine } from '../text/safe.ts'
import { renderTable } from '../text/table.ts'
import { withReadyDatabase } from '../with-database.ts'

/** `commitpost export list` */
export const exportListCommand: Command = defineCommand({
  name: 'export list',
  summary: { en: 'Lists what was exported, newest first', ko: '내보낸 것을 최신순으로 보여 줍니다' },
  operands: {},
  options: {
    stream: text('STREAM', { en: 'Only those of this stream', ko: '이 스트림의 것만' }),
    ...pageOptions,
  },
  run: (invocation) =>
    withReadyDatabase(invocation, async (database) => {
      const { values, globals, terminal } = invocation
      const { stream, before, limit = DEFAULT_LIMIT } = values
      const found = await database.exportsBy(undefined).list({
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
        ...(stream === undefined ? {} : { stream }),
        ...(before === undefined ? {} : { before }),
      })
      const shown = found.slice(0, limit)
      const nextBefore = found.length > limit ? (shown.at(-1)?.id ?? null) : null
      if (globals.json) terminal.printJson({ exports: shown, nextBefore })
      else printExports(shown, nextBefore, invocation)
      return 0
    }),
})

function printExports(
  found: readonly ExportRecord[],
  nextBefore: string | null,
  { terminal, messages, formats }: Invocation<unknown>,
): void {
  const { columns, none, unmasked, notVerified, nextPage } = messages.exports
  if (found.length === 0) {
    terminal.note(none)
    return
  }
  const head = [
    { title: columns.id, align: 'right' as const },
    { title: columns.stream },
    { title: columns.positions },
    { title: columns.events, align: 'right' as const },
    { title: columns.exportedAt },
    { title: columns.by },
    { title: columns.verifiedAt },
    { title: columns.location, elastic: true },
  ]
  const rows = found.map((exported) =>
    [
      exported.id,
      exported.stream,
      `${exported.firstPosition}-${exported.lastPosition}`,
      formats.count(exported.events),
      formats.time(exported.createdAt),
      exported.exportedBy,
      exported.verifiedAt === null ? notVerified : formats.time(exported.verifiedAt),
      `${exported.location}${exported.masked ? '' : unmasked}`,
    ].map(safeLine),
  )
  for (const line of renderTable(head, rows, terminal.table)) terminal.print(line)
  if (nextBefore !== null) terminal.note(nextPage(nextBefore))
}
