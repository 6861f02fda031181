import {
  type Attributes,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import {
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import { textProperty } from '../../runtime/property.ts'
import { describeError } from '../../runtime/text.ts'
import type { PublishingInfo, Tracing } from '../tracing.ts'
import type { AttemptInfo } from '../worker-events.ts'
import { contextOf, currentHeaders } from './span-context.ts'

/** How spans are made. */
export interface OpenTelemetryOptions {
  /**
   * Makes the spans.
   * @default the tracer "commitpost" of the provider that the application has registered
   */
  readonly tracer?: Pick<Tracer, 'startSpan'>
}

const OPTION_NAMES: readonly (keyof OpenTelemetryOptions)[] = ['tracer']

/**
 * Traces by OpenTelemetry, for `createOutbox({ tracing })`. A publish is a span of the kind PRODUCER in the trace that is
 * current, and events carry it; each attempt at a delivery is a span of the kind CONSUMER below it, and what the handler
 * publishes is below that. Without a registered provider it does nothing, and traces that events carry go on.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Tracing {
  refuseProblems('openTelemetry', problemsOf(options))
  const tracer = options.tracer ?? trace.getTracer('commitpost')
  return {
    headers: currentHeaders,
    publishing: async (info, work) => {
      const span = tracer.startSpan(publishName(info), {
        kind: SpanKind.PRODUCER,
        attributes: publishAttributes(info),
      })
      return await within(span, context.active(), async () => {
        const ids = await work()
        if (typeof ids === 'string') span.setAttribute('messaging.message.id', ids)
        return ids
      })
    },
    handling: (attempt, work, describe) => {
      const parent = contextOf(attempt.event.headers)
      const span = tracer.startSpan(
        `process ${attempt.event.stream}`,
        { kind: SpanKind.CONSUMER, attributes: attemptAttributes(attempt) },
        parent,
      )
      return within(span, parent, work, describe)
    },
  }
}

function problemsOf(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    methodsProblem('tracer', options['tracer'], ['startSpan']),
  ]
}

/** Runs the work with the span as the current one, and ends the span with it, whether it waits or not. */
function within<Result>(
  span: Span,
  parent: ReturnType<typeof contextOf>,
  work: () => Result,
  describe: (thrown: unknown) => string = describeError,
): Result {
  try {
    const result = context.with(trace.setSpan(parent, span), work)
    if (!isPromise(result)) {
      span.end()
      return result
    }
    void result.then(
      () => span.end(),
      (error: unknown) => endFailed(span, error, describe),
    )
    return result
  } catch (error) {
    endFailed(span, error, describe)
    throw error
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function endFailed(span: Span, error: unknown, describe: (thrown: unknown) => string): void {
  span.setAttribute('error.type', textProperty(error, 'code') ?? textProperty(error, 'name') ?? '_OTHER')
  span.setStatus({ code: SpanStatusCode.ERROR, message: describe(error) })
  span.end()
}

const SYSTEM = { 'messaging.system': 'commitpost' } as const

function publishName({ events }: PublishingInfo): string {
  const stream = oneStream(events)
  return stream === null ? 'publish' : `publish ${stream}`
}

/** The stream of all of them; null where they have several, or none is known. */
function oneStream(events: PublishingInfo['events']): string | null {
  const streams = new Set(events.map(({ stream }) => stream))
  return streams.size === 1 ? (events[0]?.stream ?? null) : null
}

function publishAttributes({ events }: PublishingInfo): Attributes {
  const stream = oneStream(events)
  const types = new Set(events.map(({ name }) => name))
  return {
    ...SYSTEM,
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    ...(stream !== null && { 'messaging.destination.name': stream }),
    ...(events.length !== 1 && { 'messaging.batch.message_count': events.length }),
    ...(types.size === 1 && { 'commitpost.event.type': events[0]?.name }),
  }
}

function attemptAttributes({ subscription, event, attempt, maxAttempts }: AttemptInfo): Attributes {
  const correlationId = event.headers['correlationId']
  return {
    ...SYSTEM,
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': event.stream,
    'messaging.consumer.group.name': subscription,
    'messaging.message.id': event.eventId,
    ...(correlationId !== undefined && { 'messaging.message.conversation_id': correlationId }),
    'commitpost.event.type': event.type,
    'commitpost.aggregate.type': event.aggregateType,
    'commitpost.aggregate.id': event.aggregateId,
    'commitpost.attempt': attempt,
    'commitpost.max_attempts': maxAttempts,
  }
}
