/** Telemetry into memory, and its spans as a tree of text. */
import { type Attributes, SpanKind, SpanStatusCode } from "@opentelemetry/api"
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  type SpanProcessor
} from "@opentelemetry/sdk-trace-base"

export interface Recorder {
  readonly tracerProvider: BasicTracerProvider
  readonly spans: () => ReadonlyArray<ReadableSpan>
  readonly named: (name: string) => ReadonlyArray<ReadableSpan>
  readonly traces: () => number
  /** Every span under its parent, in the order in which they began. */
  readonly tree: (names?: Readonly<Record<string, string>>) => string
}

export const make = (sampler: Sampler = new AlwaysOnSampler()): Recorder => {
  const exporter = new InMemorySpanExporter()
  /** Span ids as they began: in virtual time, what follows may begin at the same moment. */
  const begun: Array<string> = []
  const order: SpanProcessor = {
    onStart: (span) => void begun.push(span.spanContext().spanId),
    onEnd: () => {},
    forceFlush: async () => {},
    shutdown: async () => {}
  }
  const tracerProvider = new BasicTracerProvider({
    sampler,
    spanProcessors: [order, new SimpleSpanProcessor(exporter)]
  })
  const place = (span: ReadableSpan) => begun.indexOf(span.spanContext().spanId)
  const spans = () => exporter.getFinishedSpans().toSorted((a, b) => place(a) - place(b))
  return {
    tracerProvider,
    spans,
    named: (name) => spans().filter((span) => span.name === name),
    traces: () => new Set(spans().map((span) => span.spanContext().traceId)).size,
    tree: (names = {}) => {
      const text = draw(spans())
      return Object.entries(names).reduce((sofar, [from, to]) => sofar.replaceAll(from, to), text)
    }
  }
}

/** What a line tells of a span's attributes. */
const told: ReadonlyArray<readonly [string, string]> = [
  ["messaging.batch.message_count", "messages"],
  ["requeue.message.attempt", "attempt"],
  ["requeue.message.rerun", "rerun"],
  ["requeue.message.redrives", "redrives"],
  ["requeue.retry.delay", "delay"],
  ["requeue.dead_letter.reason", "reason"],
  ["error.type", "error"]
]

const describe = (attributes: Attributes) =>
  told.flatMap(([key, word]) => (attributes[key] === undefined ? [] : [`${word}=${String(attributes[key])}`]))

const draw = (spans: ReadonlyArray<ReadableSpan>): string => {
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]))
  const line = (span: ReadableSpan): string => {
    const links = span.links.map(({ context }) => names.get(context.spanId) ?? "unknown")
    const isError = span.status.code === SpanStatusCode.ERROR
    return [
      span.name,
      `(${SpanKind[span.kind].toLowerCase()})`,
      ...describe(span.attributes),
      ...(isError ? ["!"] : []),
      ...(links.length === 0 ? [] : [`-> ${[...new Set(links)].join(", ")}`])
    ].join(" ")
  }
  const under = (parent: string | undefined, indent: string): ReadonlyArray<string> =>
    spans
      .filter(({ parentSpanContext }) =>
        parent === undefined
          ? parentSpanContext === undefined || !names.has(parentSpanContext.spanId)
          : parentSpanContext?.spanId === parent
      )
      .flatMap((span) => [`${indent}${line(span)}`, ...under(span.spanContext().spanId, `${indent}  `)])
  return under(undefined, "").join("\n")
}
