import { functionProblem, refuseProblems } from '../runtime/option-checks.ts'
import type { Handler, HandlerMap, Middleware } from './handler.ts'

/** Puts the middleware around every handler, the first outermost. Throws `InvalidOptionsError` for one that returns none. */
export function wrapHandlers(handlers: HandlerMap, middleware: readonly Middleware[]): HandlerMap {
  const wrap = (handler: Handler): Handler => middleware.reduceRight(wrapOnce, handler)
  return Object.fromEntries(Object.entries(handlers).map(([type, handler]) => [type, wrap(handler)]))
}

function wrapOnce(next: Handler, around: Middleware, index: number): Handler {
  const wrapped: unknown = around(next)
  refuseProblems('middleware', [functionProblem(`what middleware[${index}] returns`, wrapped ?? null)])
  return wrapped as Handler
}
