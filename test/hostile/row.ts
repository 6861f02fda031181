import type { CommitpostErrorCode } from '../../src/index.ts'
import type { Scene } from './scene.ts'

/** Something hostile that is refused: with which error, in which words, and with nothing changed in the tables. */
export interface Refusal {
  readonly kind: 'refused'
  readonly does: string
  readonly code: CommitpostErrorCode
  readonly says: string
  run(scene: Scene): unknown
}

/** A statement of somebody else's that the database itself refuses: by which SQLSTATE, in which words. */
export interface SqlRefusal {
  readonly kind: 'sql'
  readonly does: string
  readonly sqlState: string
  readonly says: string
  run(scene: Scene): unknown
}

/** Something hostile that is borne: `run` returns what came of it. */
export interface Behaviour {
  readonly kind: 'borne'
  readonly does: string
  /** What happens, for readers. */
  readonly means: string
  readonly expected: unknown
  run(scene: Scene): Promise<unknown>
}

/** A call of the program that is refused: exit code, code of the error, words on the standard error. */
export interface CliRefusal {
  readonly kind: 'cli'
  readonly args: readonly string[]
  readonly exit: 1 | 2
  readonly code: string
  readonly says: string
  readonly env?: Readonly<Record<string, string>>
}

export type Row = Refusal | SqlRefusal | Behaviour | CliRefusal

/** Rows about one part of the library. */
export interface Group {
  readonly title: string
  readonly rows: readonly Row[]
}

export function refused(does: string, code: CommitpostErrorCode, says: string, run: Refusal['run']): Refusal {
  return { kind: 'refused', does, code, says, run }
}

/** Options or arguments that cannot work. */
export function invalid(does: string, says: string, run: Refusal['run']): Refusal {
  return refused(does, 'INVALID_OPTIONS', says, run)
}

export function sqlRefused(does: string, sqlState: string, says: string): SqlRefusal {
  return { kind: 'sql', does, sqlState, says, run: ({ pool }) => pool.query(does) }
}

export function borne(does: string, means: string, expected: unknown, run: Behaviour['run']): Behaviour {
  return { kind: 'borne', does, means, expected, run }
}

export function cli(
  args: readonly string[],
  exit: 1 | 2,
  code: string,
  says: string,
  env?: Readonly<Record<string, string>>,
): CliRefusal {
  return { kind: 'cli', args, exit, code, says, ...(env === undefined ? {} : { env }) }
}

/** What is done, as a reader sees it. */
export function titleOf(row: Row): string {
  return row.kind === 'cli' ? ['commitpost', ...row.args].join(' ') : row.does
}

/** What it gets, as a reader sees it. */
export function answerOf(row: Row): string {
  switch (row.kind) {
    case 'refused':
      return `${row.code}: ${row.says}`
    case 'sql':
      return `refused by the database, ${row.sqlState}: ${row.says}`
    case 'cli':
      return `exit code ${row.exit}, ${row.code}: ${row.says}`
    case 'borne':
      return row.means
    default:
      return row satisfies never
  }
}

/** Passes something of the wrong type where the compiler would not let it: programs in JavaScript can. */
export function wrong(value: unknown): never {
  return value as never
}
