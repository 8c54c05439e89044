/**
 * Instruments, and what they count. No attribute names a message: their values are few.
 *
 * https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/
 */
import type { Attributes as Values, Meter } from "@opentelemetry/api"
import type { Event, Outgoing, Telemetry } from "@requeue/core"
import * as Attributes from "./attributes.ts"

export interface ConsumerMetrics {
  readonly onEvent: Event.Hook
  /** A handler has run for so many milliseconds. */
  readonly processed: (millis: number, ending: Telemetry.Ending) => void
  readonly settled: (operation: string, millis: number, error: string | undefined) => void
}

export interface Metrics {
  readonly sent: (
    broker: string,
    messages: ReadonlyArray<Outgoing.Outgoing>,
    millis: number,
    error: string | undefined
  ) => void
  readonly consumer: (about: Telemetry.About) => ConsumerMetrics
}

/** Seconds; as the conventions ask. */
const operationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Seconds: from milliseconds to a day. */
const delayBuckets = [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400]

const attemptBuckets = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100]

/** Errors that are told by name, at most; further ones are `_OTHER`. A name may come from anywhere. */
const errorLimit = 100

/** Retries whose lateness is awaited at most; the oldest are forgotten. */
const dueLimit = 10_000

export const make = (meter: Meter): Metrics => {
  const histogram = (name: string, unit: string, description: string, explicitBucketBoundaries: Array<number>) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  const sentMessages = meter.createCounter("messaging.client.sent.messages", {
    unit: "{message}",
    description: "Messages that were sent, also in vain."
  })
  const consumed = meter.createCounter("messaging.client.consumed.messages", {
    unit: "{message}",
    description: "Deliveries."
  })
  const operations = histogram(
    "messaging.client.operation.duration",
    "s",
    "Duration of sends and settlements.",
    operationBuckets
  )
  const processing = histogram("messaging.process.duration", "s", "Duration of handler runs.", operationBuckets)
  const settlements = meter.createCounter("requeue.settlements", {
    unit: "{message}",
    description: "What became of deliveries."
  })
  const attempts = histogram(
    "requeue.message.attempts",
    "{attempt}",
    "Attempts of messages that came to an end.",
    attemptBuckets
  )
  const asked = histogram("requeue.retry.delay", "s", "Delay that was asked of retries.", delayBuckets)
  const lateness = histogram("requeue.retry.lateness", "s", "How much later than asked a retry came.", delayBuckets)
  const pauses = meter.createCounter("requeue.consumer.pauses", {
    unit: "{pause}",
    description: "Pauses by consumer backoff."
  })
  const lostLeases = meter.createCounter("requeue.lease.losses", {
    unit: "{lease}",
    description: "Leases that could not be extended."
  })

  const named = new Set<string>()
  const error = (name: string | undefined): Values => {
    if (name === undefined) return {}
    if (named.size < errorLimit) named.add(name)
    return { [Attributes.errorType]: named.has(name) ? name : "_OTHER" }
  }

  const consumer = (about: Telemetry.About): ConsumerMetrics => {
    const fixed = { ...Attributes.system(about.broker), [Attributes.destination]: about.queue }
    /** When retries are due, by message. */
    const due = new Map<string, number>()

    const awaitRetry = (id: string, delay: number): void => {
      asked.record(delay / 1000, fixed)
      due.delete(id)
      due.set(id, about.now() + delay)
      if (due.size > dueLimit) due.delete(due.keys().next().value!)
    }

    /** One that comes before its time is given back, and comes again. */
    const arrived = (id: string): void => {
      const late = about.now() - (due.get(id) ?? Number.POSITIVE_INFINITY)
      if (late < 0) return
      due.delete(id)
      lateness.record(late / 1000, fixed)
    }

    const settle = (way: string, more: Values = {}) =>
      settlements.add(1, { ...fixed, ...more, [Attributes.settlement]: way })

    const end = (event: Event.Event & { readonly attempts: number }, way: string, more?: Values): void => {
      settle(way, more)
      due.delete((event as { readonly id: string }).id)
      attempts.record(event.attempts, { ...fixed, [Attributes.settlement]: way })
    }

    return {
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
            if (due.size > 0) arrived(event.id)
            return
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
            return awaitRetry(event.id, event.delay)
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

  return {
    sent: (broker, messages, millis, failure) => {
      const why = { ...Attributes.system(broker), ...error(failure) }
      for (const [queue, { length }] of Map.groupBy(messages, (message) => message.queue)) {
        const where = { ...why, [Attributes.destination]: queue }
        sentMessages.add(length, { ...where, [Attributes.operationName]: "send" })
        operations.record(millis / 1000, { ...where, ...Attributes.operation("send", "send") })
      }
    },
    consumer
  }
}
