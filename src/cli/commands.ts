import type { Command } from './command.ts'
import { auditVerifyCommand } from './commands/audit-verify.ts'
import { debeziumConfigCommand } from './commands/debezium-config.ts'
import { demoCommand } from './commands/demo.ts'
import { dlqAmendCommand } from './commands/dlq-amend.ts'
import { dlqBlockedCommand } from './commands/dlq-blocked.ts'
import { dlqExportCommand } from './commands/dlq-export.ts'
import { dlqGroupCommand } from './commands/dlq-group.ts'
import { dlqListCommand } from './commands/dlq-list.ts'
import { dlqPurgeCommand } from './commands/dlq-purge.ts'
import { dlqResolveCommand } from './commands/dlq-resolve.ts'
import { dlqRetryCommand } from './commands/dlq-retry.ts'
import { dlqShowCommand } from './commands/dlq-show.ts'
import { doctorCommand } from './commands/doctor.ts'
import { exportListCommand } from './commands/export-list.ts'
import { exportRunCommand } from './commands/export-run.ts'
import { exportVerifyCommand } from './commands/export-verify.ts'
import { metricsCommand } from './commands/metrics.ts'
import { migrateSqlCommand } from './commands/migrate-sql.ts'
import { migrateStatusCommand } from './commands/migrate-status.ts'
import { migrateUpCommand } from './commands/migrate-up.ts'
import { monitorCommand } from './commands/monitor.ts'
import { moveAsideCommand } from './commands/move-aside.ts'
import { pauseCommand, resumeCommand } from './commands/pause.ts'
import { redriveApplyCommand } from './commands/redrive-apply.ts'
import { redriveCancelCommand } from './commands/redrive-cancel.ts'
import { redrivePlanCommand } from './commands/redrive-plan.ts'
import { redriveStatusCommand } from './commands/redrive-status.ts'
import { retainRunCommand } from './commands/retain-run.ts'
import { retainStatusCommand } from './commands/retain-status.ts'
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
  debeziumConfigCommand,
  workerCommand,
  monitorCommand,
  statusCommand,
  metricsCommand,
  verifyCommand,
  whyCommand,
  doctorCommand,
  auditVerifyCommand,
  dlqListCommand,
  dlqGroupCommand,
  dlqBlockedCommand,
  dlqShowCommand,
  dlqRetryCommand,
  dlqAmendCommand,
  dlqResolveCommand,
  dlqExportCommand,
  dlqPurgeCommand,
  redrivePlanCommand,
  redriveApplyCommand,
  redriveStatusCommand,
  redriveCancelCommand,
  moveAsideCommand,
  exportRunCommand,
  exportListCommand,
  exportVerifyCommand,
  retainRunCommand,
  retainStatusCommand,
  pauseCommand,
  resumeCommand,
  retireCommand,
  versionCommand,
]
