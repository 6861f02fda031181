// All that 'commitpost' exports, by file. Begin with createOutbox (outbox.ts); docs/reference.md explains each.
export {
  ALERT_RULES,
  type Alert,
  type AlertFact,
  type AlertKind,
  type AlertRoute,
  type AlertRule,
  type AlertSeverity,
  type AlertSink,
} from './alert/alert.ts'
export type { AlertOptions } from './alert/alert-options.ts'
export type { Condition, Seen } from './alert/conditions.ts'
export type { MonitorRound } from './alert/look.ts'
export type { Monitor } from './alert/monitor.ts'
export { type EmailSinkOptions, emailSink, type MailTransport } from './alert/sinks/email-sink.ts'
export { logSink } from './alert/sinks/log-sink.ts'
export { type PagerDutySinkOptions, pagerDutySink } from './alert/sinks/pager-duty-sink.ts'
export { type SlackSinkOptions, slackSink } from './alert/sinks/slack-sink.ts'
export { type SignedRequest, verifyWebhook } from './alert/sinks/webhook-signature.ts'
export { type WebhookSinkOptions, webhookSink } from './alert/sinks/webhook-sink.ts'
export { textBlock } from './alert/text-block.ts'
export {
  defineWorkerConfig,
  type WorkerConfig,
  type WorkerConfigContext,
  type WorkerConfigSource,
} from './cli/worker-config.ts'
export type { ApplyAct } from './dead-letter/apply-plan.ts'
export type { DeadLetters, PurgeOptions } from './dead-letter/dead-letters.ts'
export type { DeadLetterView, ReadDeadLetters } from './dead-letter/read-letters.ts'
export type { Redrive } from './dead-letter/redrive.ts'
export type { ClaimedDelivery, DeliveryFailure, DeliveryStatus, Lease } from './delivery/delivery.ts'
export { FAILURE_MEANINGS, type OwnFailureCode } from './delivery/failure.ts'
export { createDispatcher, type EventDispatcher } from './dispatch/dispatcher.ts'
export type { Handler, HandlerContext, HandlerMap, Middleware, Once } from './dispatch/handler.ts'
export type { DispatcherOptions, EventReader } from './dispatch/options.ts'
export type { Transport, TransportParts, TransportSession } from './dispatch/transport.ts'
export type {
  Catalogue,
  CatalogueEvent,
  EventName,
  EventsByName,
  PayloadInput,
  PayloadOutput,
} from './event/catalogue.ts'
export {
  assertCompatible,
  type CatalogueCheck,
  checkCatalogue,
  IncompatibleCatalogueError,
} from './event/check-catalogue.ts'
export { type CatalogueFinding, compareCatalogues } from './event/compare-catalogues.ts'
export { defineEvents } from './event/define-events.ts'
export {
  type CatalogueOptions,
  type EventDefinition,
  type Refusal,
  type SensitivePath,
  type Sink,
  type Upcaster,
  upcastFrom,
} from './event/definition.ts'
export { describeCatalogue, snapshotText } from './event/describe-catalogue.ts'
export {
  type EnvelopeFields,
  type EventEnvelope,
  fromEnvelope,
  InvalidEnvelopeError,
  toEnvelope,
} from './event/envelope.ts'
export { type EventProblem, InvalidEventError, UnreadablePayloadError } from './event/errors.ts'
export type {
  EventHeaders,
  EventIdentity,
  JsonObject,
  JsonValue,
  NewEvent,
  OutboxEvent,
} from './event/event.ts'
export { maskEvent, maskPayload } from './event/mask-payload.ts'
export {
  createMasking,
  type MaskedEvent,
  type Masking,
  type SensitiveOptions,
  type SensitiveRule,
} from './event/masking.ts'
export type { EventKind, NameRule } from './event/names.ts'
export { type StandardSchemaV1, unchecked } from './event/standard-schema.ts'
export type { DoctorOptions } from './inspect/doctor-options.ts'
export type { CheckName, Finding, FindingCode, FindingFacts, Severity } from './inspect/finding.ts'
export {
  type PrometheusMetrics,
  type PrometheusMetricsOptions,
  prometheusMetrics,
} from './inspect/prometheus-metrics.ts'
export type { DoctorReport, Proof, SubscriptionReason, WhyReport } from './inspect/proof.ts'
export type { Reason, ReasonFacts, ReasonKind } from './inspect/reason.ts'
export type { VerifyOptions } from './inspect/verify-options.ts'
export { logObserver } from './observe/log-observer.ts'
export { jsonLineLogger, type Logger, type LogLevel, silentLogger } from './observe/logger.ts'
export type { Meter } from './observe/meter.ts'
export type { PublishingInfo, Tracing } from './observe/tracing.ts'
export type { AttemptInfo, Observer, TakenDelivery, WorkerEvent } from './observe/worker-events.ts'
export { createOutbox, type Outbox, type OutboxOptions, type RetireAct } from './outbox.ts'
export { chained } from './publish/chained.ts'
export type { BatchInput, EventBus, EventDetails, PublishInput, PublishOptions } from './publish/event-bus.ts'
export {
  type ClientOf,
  type InTransactionOptions,
  inTransaction,
  type PooledTransaction,
  type TransactionPool,
} from './publish/in-transaction.ts'
export type { ExportFile, ExportManifest, ExportMasking } from './retain/export-manifest.ts'
export type { ExportProgress, ExportRunOptions } from './retain/export-options.ts'
export type { ExportProblem, ExportProblemKind, ExportReport } from './retain/export-report.ts'
export { type Exports, verifyExportFiles } from './retain/exports.ts'
export type { RetainAct, Retention, RetentionReport } from './retain/retention.ts'
export type { RetentionOptions, RetentionPolicy } from './retain/retention-options.ts'
export { type Clock, systemClock } from './runtime/clock.ts'
export type { Duration } from './runtime/duration.ts'
export { type CommitpostErrorCode, ERROR_CODES } from './runtime/error-codes.ts'
export {
  CommitpostError,
  DuplicateEventError,
  HandlerTimeoutError,
  InvalidOptionsError,
  LeaseLostError,
  NonRetryableError,
  type NotFoundDetails,
  NotFoundError,
  NotInTransactionError,
  RetryLaterError,
  SubscriptionConflictError,
  UnknownOutcomeError,
  WorkerStoppingError,
} from './runtime/errors.ts'
export type { Ids } from './runtime/ids.ts'
export type { Language } from './runtime/language.ts'
export { NoPartitionError } from './runtime/no-partition-error.ts'
export type { OperatorAct } from './runtime/operator-act.ts'
export type { Random } from './runtime/random.ts'
export {
  REFUSAL_REASONS,
  type RefusalData,
  type RefusalOptions,
  type RefusalReason,
  RefusedError,
} from './runtime/refused-error.ts'
export { SchemaMissingError, SchemaVersionError } from './runtime/schema-errors.ts'
export { type Backoff, exponential, fixed, schedule } from './settle/backoff.ts'
export { createClassify, type ErrorClassifier } from './settle/classify.ts'
export type {
  Figures,
  MonitorStore,
  OpenLetters,
  SubscriptionFigures,
  VanishedWorker,
} from './store/alert-store.ts'
export {
  type AttemptRecord,
  type BlockedKey,
  type BlockedKeyQuery,
  DEAD_LETTER_REASONS,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterGroup,
  type DeadLetterGroupQuery,
  type DeadLetterQuery,
  type DeadLetterReason,
} from './store/dead-letter-store.ts'
export type { ExportQuery, ExportRecord, ExportStore } from './store/export-store.ts'
export type {
  BacklogGauge,
  DeadLetterGauge,
  GaugeLimits,
  GaugeStore,
  Gauges,
  SubscriptionGauge,
  TableGauge,
} from './store/gauge-store.ts'
export type { SubscriptionStatus } from './store/inspect-store.ts'
export type {
  AuditReport,
  BrokenLink,
  ChainReport,
  ProofExceptions,
  SubscriptionProof,
  VerifyReport,
} from './store/proof-store.ts'
export type {
  MovedAside,
  OnItsWay,
  RedriveCount,
  RedriveFilter,
  RedrivePlan,
  RedriveProgress,
  RedriveSkip,
  RedriveState,
} from './store/redrive-store.ts'
export type { RetentionRun, RetentionWait } from './store/retention-store.ts'
export type { OutboxStore, WorkerStore } from './store/store.ts'
export type { OrderBy, RetireReport, StartFrom } from './store/subscription-store.ts'
export type { Transaction } from './store/transaction.ts'
export {
  createOutboxRepository,
  type NewOutboxEntry,
  type OutboxEntry,
  type OutboxRepository,
} from './worker/outbox-repository.ts'
export type { RedrivePolicy } from './worker/redrive-policy.ts'
export type { OutboxRepositoryOptions } from './worker/repository-options.ts'
export { runUntilSignal, stopOnSignals } from './worker/signals.ts'
export { exhaustive, type Relay, relay, type Subscription, subscription } from './worker/subscription.ts'
export type {
  ExhaustiveHandlers,
  RelayOptions,
  SubscriptionContext,
  SubscriptionHandlers,
  SubscriptionOptions,
} from './worker/subscription-options.ts'
export type { StopOptions, Worker } from './worker/worker.ts'
export type { WorkerOptions } from './worker/worker-options.ts'
