import { refuseProblems, wholeNumberProblem } from '../../runtime/option-checks.ts'

const DEFAULT_LIMIT = 50
const MOST = 1_000

/** How many rows a page has: what was asked for, within bounds. */
export function pageSize(limit: number = DEFAULT_LIMIT): number {
  refuseProblems('a page of a list', [wholeNumberProblem('limit', limit, 1, MOST)])
  return limit
}
