import { LOGGER_METHODS, type Logger, type LogLevel } from '../../observe/logger.ts'
import { methodsProblem, refuseProblems } from '../../runtime/option-checks.ts'
import type { Alert, AlertSink } from '../alert.ts'
import { textBlock } from '../text-block.ts'

const LEVELS: Readonly<Record<Alert['severity'], LogLevel>> = {
  critical: 'error',
  error: 'error',
  warning: 'warn',
  info: 'info',
}

/** Writes each alert as one log line whose message is a readable block. Reports go there too. */
export function logSink(logger: Logger): AlertSink {
  refuseProblems('logSink', [methodsProblem('logger', logger ?? null, LOGGER_METHODS)])
  return {
    name: 'log',
    takesReports: true,
    send: async (alert) => {
      const { kind, rule, key, severity, data } = alert
      logger[LEVELS[severity]]({ ...data, alert: kind, rule, key, severity }, `\n${textBlock(alert)}`)
    },
  }
}
