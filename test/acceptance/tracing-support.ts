import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

/** OpenTelemetry's SDK as an application sets it up, with the spans kept in memory. */
export class TraceRecorder implements Disposable {
  readonly #exporter = new InMemorySpanExporter()

  constructor() {
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#exporter)] })
    trace.setGlobalTracerProvider(provider)
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  }

  /** The spans that have ended, by name, in the order in which they began. */
  named(name: string): readonly ReadableSpan[] {
    const found = this.#exporter.getFinishedSpans().filter((span) => span.name === name)
    return found.toSorted(
      (one, other) => one.startTime[0] - other.startTime[0] || one.startTime[1] - other.startTime[1],
    )
  }

  /** Runs the work in a span of the application's own. */
  inSpan<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return trace.getTracer('application').startActiveSpan(name, async (span) => {
      try {
        return await work()
      } finally {
        span.end()
      }
    })
  }

  [Symbol.dispose](): void {
    trace.disable()
    context.disable()
  }
}

/** Whose child a span is. */
export function parentOf(span: ReadableSpan | undefined): string | undefined {
  return span?.parentSpanContext?.spanId
}

export function idOf(span: ReadableSpan | undefined): string | undefined {
  return span?.spanContext().spanId
}

export function traceOf(span: ReadableSpan | undefined): string | undefined {
  return span?.spanContext().traceId
}
