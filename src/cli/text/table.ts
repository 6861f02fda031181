import { displayWidth, pad, truncate } from '../../runtime/width.ts'

/** One column of a table. */
export interface Column {
  readonly title: string
  /** @default 'left' */
  readonly align?: 'left' | 'right'
  /**
   * Whether the column gives way when the table is wider than the terminal. One column at most.
   * @default false
   */
  readonly elastic?: boolean
}

/** How a table is shown. */
export interface TableStyle {
  /** The columns of the terminal; null where nothing limits the width, as in a pipe. */
  readonly width: number | null
  /** Sets the titles off from the rows. */
  readonly title: (text: string) => string
}

const GAP = '  '
const NARROWEST = 12

/** A table of text, one string per line. Cells are taken as they are: clean them before. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  style: TableStyle,
): readonly string[] {
  const widths = columnWidths(columns, rows, style.width)
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ align }, index) =>
        pad(truncate(cells[index] ?? '', widthAt(widths, index)), widthAt(widths, index), align),
      )
      .join(GAP)
      .trimEnd()
  return [style.title(line(columns.map(({ title }) => title))), ...rows.map(line)]
}

function columnWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  limit: number | null,
): readonly number[] {
  const natural = columns.map(({ title }, index) =>
    Math.max(displayWidth(title), ...rows.map((row) => displayWidth(row[index] ?? ''))),
  )
  const total = natural.reduce((sum, width) => sum + width, 0) + GAP.length * (columns.length - 1)
  if (limit === null || total <= limit) return natural
  return natural.map((width, index) =>
    columns[index]?.elastic === true ? Math.max(Math.min(width, NARROWEST), width - (total - limit)) : width,
  )
}

function widthAt(widths: readonly number[], index: number): number {
  return widths[index] as number
}
