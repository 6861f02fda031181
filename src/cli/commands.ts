import type { Command } from './command.ts'
import { auditVerifyCommand } from './commands/audit-verify.ts'
import { demoCommand } from './commands/demo.ts'
import { dlqListCommand } from './commands/dlq-list.ts'
import { dlqResolveCommand } from './commands/dlq-resolve.ts'
import { dlqRetryCommand } from './commands/dlq-retry.ts'
import { dlqShowCommand } from './commands/dlq-show.ts'
import { doctorCommand } from './commands/doctor.ts'
import { migrateSqlCommand } from './commands/migrate-sql.ts'
import { migrateStatusCommand } from './commands/migrate-status.ts'
import { migrateUpCommand } from './commands/migrate-up.ts'
import { pauseCommand, resumeCommand } from './commands/pause.ts'
import { retireCommand } from './commands/retire.ts'
import { rolesSqlCommand } from './commands/roles-sql.ts'
import { statusCommand } from './commands/status.ts'
import { verifyCommand } from './commands/verify.ts'
import { versionCommand } from './commands/version.ts'
import { whyCommand } from './commands/why.ts'
import { workerCommand } from './commands/worker.ts'

/** Every command of the program, in the order the help lists them. */
export const COMMANDS: readonly Command[] = [
  demoCommand,
  migrateUpCommand,
  migrateStatusCommand,
  migrateSqlCommand,
  rolesSqlCommand,
  workerCommand,
  statusCommand,
  verifyCommand,
  whyCommand,
  doctorCommand,
  auditVerifyCommand,
  dlqListCommand,
  dlqShowCommand,
  dlqRetryCommand,
  dlqResolveCommand,
  pauseCommand,
  resumeCommand,
  retireCommand,
  versionCommand,
]
