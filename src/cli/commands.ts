import type { Command } from './command.ts'

/** A command by the words that call it. Its code, and whatever that needs, is loaded when somebody wants to know more. */
export interface CommandEntry {
  readonly name: string
  load(): Promise<Command>
}

/** Every command of the program, in the order the help lists them. */
export const COMMANDS: readonly CommandEntry[] = [
  { name: 'demo', load: async () => (await import('./commands/demo.ts')).demoCommand },
  { name: 'migrate up', load: async () => (await import('./commands/migrate-up.ts')).migrateUpCommand },
  {
    name: 'migrate status',
    load: async () => (await import('./commands/migrate-status.ts')).migrateStatusCommand,
  },
  { name: 'migrate sql', load: async () => (await import('./commands/migrate-sql.ts')).migrateSqlCommand },
  {
    name: 'migrate partition',
    load: async () => (await import('./commands/migrate-partition.ts')).migratePartitionCommand,
  },
  { name: 'roles sql', load: async () => (await import('./commands/roles-sql.ts')).rolesSqlCommand },
  {
    name: 'debezium config',
    load: async () => (await import('./commands/debezium-config.ts')).debeziumConfigCommand,
  },
  { name: 'worker', load: async () => (await import('./commands/worker.ts')).workerCommand },
  { name: 'monitor', load: async () => (await import('./commands/monitor.ts')).monitorCommand },
  { name: 'status', load: async () => (await import('./commands/status.ts')).statusCommand },
  { name: 'metrics', load: async () => (await import('./commands/metrics.ts')).metricsCommand },
  { name: 'verify', load: async () => (await import('./commands/verify.ts')).verifyCommand },
  { name: 'why', load: async () => (await import('./commands/why.ts')).whyCommand },
  { name: 'doctor', load: async () => (await import('./commands/doctor.ts')).doctorCommand },
  { name: 'audit verify', load: async () => (await import('./commands/audit-verify.ts')).auditVerifyCommand },
  { name: 'dlq list', load: async () => (await import('./commands/dlq-list.ts')).dlqListCommand },
  { name: 'dlq group', load: async () => (await import('./commands/dlq-group.ts')).dlqGroupCommand },
  { name: 'dlq blocked', load: async () => (await import('./commands/dlq-blocked.ts')).dlqBlockedCommand },
  { name: 'dlq show', load: async () => (await import('./commands/dlq-show.ts')).dlqShowCommand },
  { name: 'dlq retry', load: async () => (await import('./commands/dlq-retry.ts')).dlqRetryCommand },
  { name: 'dlq amend', load: async () => (await import('./commands/dlq-amend.ts')).dlqAmendCommand },
  { name: 'dlq resolve', load: async () => (await import('./commands/dlq-resolve.ts')).dlqResolveCommand },
  { name: 'dlq export', load: async () => (await import('./commands/dlq-export.ts')).dlqExportCommand },
  { name: 'dlq purge', load: async () => (await import('./commands/dlq-purge.ts')).dlqPurgeCommand },
  { name: 'redrive plan', load: async () => (await import('./commands/redrive-plan.ts')).redrivePlanCommand },
  {
    name: 'redrive apply',
    load: async () => (await import('./commands/redrive-apply.ts')).redriveApplyCommand,
  },
  {
    name: 'redrive status',
    load: async () => (await import('./commands/redrive-status.ts')).redriveStatusCommand,
  },
  {
    name: 'redrive cancel',
    load: async () => (await import('./commands/redrive-cancel.ts')).redriveCancelCommand,
  },
  { name: 'move-aside', load: async () => (await import('./commands/move-aside.ts')).moveAsideCommand },
  { name: 'export run', load: async () => (await import('./commands/export-run.ts')).exportRunCommand },
  { name: 'export list', load: async () => (await import('./commands/export-list.ts')).exportListCommand },
  {
    name: 'export verify',
    load: async () => (await import('./commands/export-verify.ts')).exportVerifyCommand,
  },
  { name: 'retain run', load: async () => (await import('./commands/retain-run.ts')).retainRunCommand },
  {
    name: 'retain status',
    load: async () => (await import('./commands/retain-status.ts')).retainStatusCommand,
  },
  { name: 'pause', load: async () => (await import('./commands/pause.ts')).pauseCommand },
  { name: 'resume', load: async () => (await import('./commands/pause.ts')).resumeCommand },
  { name: 'retire', load: async () => (await import('./commands/retire.ts')).retireCommand },
  { name: 'version', load: async () => (await import('./commands/version.ts')).versionCommand },
]
