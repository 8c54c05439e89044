/**
 * Counters and histograms. No attribute names a message, so attributes have few values.
 *
 * https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/
 */
import type { Attributes as Values, Meter } from "@opentelemetry/api"
import type { Delivery, Event } from "@requeue/core"
import { BoundedMap, type Outgoing, type Telemetry } from "@requeue/core/port"
import * as Attributes from "./attributes.ts"

/** The metrics of one consumer. */
export interface ConsumerMetrics {
  readonly onEvent: Event.Hook
  /** Records when a handler run begins with a delivery, in milliseconds since 1970. */
  readonly begun: (delivery: Delivery.Delivery, at: number) => void
  /** Records a handler run and its milliseconds. */
  readonly processed: (millis: number, ending: Telemetry.Ending) => void
  /** Records a settlement and its milliseconds; `error` is the type of its error. */
  readonly settled: (operation: string, millis: number, error: string | undefined) => void
}

/** The metrics of all producers and consumers. */
export interface Metrics {
  /** Records a publish and its milliseconds; `error` is the type of its error. */
  readonly sent: (
    broker: string,
    messages: ReadonlyArray<Outgoing.Outgoing>,
    millis: number,
    error: string | undefined
  ) => void
  readonly consumer: (about: Telemetry.About) => ConsumerMetrics
}

/** Bounds in seconds, from the conventions. */
const operationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Bounds in seconds: from milliseconds to a day. */
const delayBuckets = [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400]

const attemptBuckets = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100]

/** The largest number of different error names, because a name may be any text. Further names become `_OTHER`. */
const maxErrors = 100

/** The largest number of retries whose due times are kept. */
const maxDue = 10_000

const makeInstruments = (meter: Meter) => {
  const histogram = (name: string, unit: string, description: string, explicitBucketBoundaries: Array<number>) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  const counter = (name: string, unit: string, description: string) => meter.createCounter(name, { unit, description })
  return {
    sentMessages: counter(
      "messaging.client.sent.messages",
      "{message}",
      "Messages that were sent, also unsuccessfully."
    ),
    consumed: counter("messaging.client.consumed.messages", "{message}", "Deliveries."),
    operations: histogram(
      "messaging.client.operation.duration",
      "s",
      "Duration of sends and settlements.",
      operationBuckets
    ),
    processing: histogram("messaging.process.duration", "s", "Duration of handler runs.", operationBuckets),
    settlements: counter("requeue.settlements", "{message}", "Settlements of deliveries."),
    attempts: histogram(
      "requeue.message.attempts",
      "{attempt}",
      "Attempts of messages that were acked, dead-lettered or dropped.",
      attemptBuckets
    ),
    lag: histogram("requeue.message.lag", "s", "Age of messages when their first handler run begins.", delayBuckets),
    asked: histogram("requeue.retry.delay", "s", "Requested delay of retries.", delayBuckets),
    lateness: histogram("requeue.retry.lateness", "s", "How much later than requested a retry arrived.", delayBuckets),
    pauses: counter("requeue.consumer.pauses", "{pause}", "Pauses by consumer backoff."),
    lostLeases: counter("requeue.lease.losses", "{lease}", "Leases that could not be extended.")
  }
}

type Instruments = ReturnType<typeof makeInstruments>

/** Makes the attributes of an error's name. */
const makeErrors = () => {
  const named = new Set<string>()
  return (name: string | undefined): Values => {
    if (name === undefined) return {}
    if (named.size < maxErrors) named.add(name)
    return { [Attributes.errorType]: named.has(name) ? name : "_OTHER" }
  }
}

/** Measures the delays and the lateness of a consumer's retries. */
const makeRetries = ({ asked, lateness }: Instruments, about: Telemetry.About, fixed: Values) => {
  const due = BoundedMap.make<number>(maxDue)
  return {
    forget: due.delete,
    scheduled: (id: string, delay: number): void => {
      asked.record(delay / 1000, fixed)
      due.set(id, about.now() + delay)
    },
    /** A message that arrives early is returned, and is delivered again. */
    arrived: (id: string): void => {
      if (due.isEmpty()) return
      const late = about.now() - (due.get(id) ?? Number.POSITIVE_INFINITY)
      if (late < 0) return
      due.delete(id)
      lateness.record(late / 1000, fixed)
    }
  }
}

const makeConsumer = (
  instruments: Instruments,
  error: (name: string | undefined) => Values,
  about: Telemetry.About
): ConsumerMetrics => {
  const { attempts, consumed, lag, lostLeases, operations, pauses, processing, settlements } = instruments
  const fixed = { ...Attributes.system(about.broker), [Attributes.destination]: about.queue }
  const retries = makeRetries(instruments, about, fixed)

  const settle = (way: string, more: Values = {}) =>
    settlements.add(1, { ...fixed, ...more, [Attributes.settlement]: way })

  const end = (event: Event.Subject, way: string, more?: Values): void => {
    settle(way, more)
    retries.forget(event.id)
    attempts.record(event.attempts, { ...fixed, [Attributes.settlement]: way })
  }

  return {
    begun: ({ attempts: attempt, metadata: { firstPublished, notBefore, redrives } }, at) => {
      // Not every broker reports when later attempts were due.
      if (attempt > 1 || redrives > 0) return
      lag.record(Math.max(0, at - Math.max(firstPublished, notBefore)) / 1000, fixed)
    },
    processed: (millis, ending) =>
      processing.record(millis / 1000, {
        ...fixed,
        [Attributes.operationName]: "process",
        ...error(ending._tag === "Failed" ? ending.error.name : undefined)
      }),
    settled: (name, millis, failure) =>
      operations.record(millis / 1000, { ...fixed, ...Attributes.operation(name, "settle"), ...error(failure) }),
    onEvent: (event) => {
      switch (event._tag) {
        case "Received":
          consumed.add(1, { ...fixed, [Attributes.operationName]: "process" })
          return retries.arrived(event.id)
        case "Succeeded":
          return end(event, "ack")
        case "DeadLettered": {
          const more = { [Attributes.reason]: event.reason, [Attributes.target]: event.target }
          return end(event, "dead_letter", { ...more, ...error(event.error.name) })
        }
        case "Dropped":
          return end(event, "drop", { [Attributes.reason]: event.reason, ...error(event.error.name) })
        case "RetryScheduled":
          settle("retry", error(event.error?.name))
          return retries.scheduled(event.id, event.delay)
        case "Released":
          return settle("release")
        case "BackoffEntered":
          return pauses.add(1, { ...fixed, [Attributes.because]: event.because })
        case "LeaseLost":
          return lostLeases.add(1, fixed)
        default:
      }
    }
  }
}

/** Makes the metrics of a meter. */
export const make = (meter: Meter): Metrics => {
  const instruments = makeInstruments(meter)
  const error = makeErrors()
  return {
    sent: (broker, messages, millis, failure) => {
      const why = { ...Attributes.system(broker), ...error(failure) }
      for (const [queue, { length }] of Map.groupBy(messages, (message) => message.queue)) {
        const where = { ...why, [Attributes.destination]: queue }
        instruments.sentMessages.add(length, { ...where, [Attributes.operationName]: "send" })
        instruments.operations.record(millis / 1000, { ...where, ...Attributes.operation("send", "send") })
      }
    },
    consumer: (about) => makeConsumer(instruments, error, about)
  }
}
