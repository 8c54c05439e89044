/** Gauges, observed when metrics are collected: consumers, their backoff, their queues, the connection. */
import type { Attributes as Values, BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Health } from "@requeue/core"
import type { Telemetry } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Attributes from "./attributes.ts"

/** The gauges of all consumers. */
export interface Gauges {
  /** Observes a consumer. The returned function ends the observation. */
  readonly add: (consumer: Telemetry.About) => () => void
}

/**
 * The consumers of one queue. Their observations are combined into one number, because an SDK keeps only the last of
 * several. A queue without consumers is still observed, because an SDK keeps reporting the last number that it got.
 */
interface ObservedQueue {
  readonly where: Values
  readonly members: Set<Telemetry.About>
  /** The consumer that was added last, because its queue may fill further after the consumer has stopped. */
  readonly last: Telemetry.About
}

/** The longest wait for a queue's numbers, because a slow broker must not delay the other metrics. */
const countsTimeout = "5 seconds"

/** States of consumers. A stopped consumer is not observed. */
const consumerStates = ["running", "paused", "probing", "stalled", "down", "draining"] as const

const makeInstruments = (meter: Meter) => {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(name, { unit, description })
  const consumers = gauge("requeue.consumers", "{consumer}", "Consumers that take messages.")
  const states = gauge("requeue.consumer.count", "{consumer}", "Consumers by their state of health.")
  const inFlight = gauge("requeue.consumer.in_flight", "{message}", "Messages that consumers hold.")
  const quarantined = gauge(
    "requeue.consumer.quarantined",
    "{message}",
    "Messages of which the broker refuses every settlement."
  )
  const paused = gauge("requeue.consumer.paused", "{consumer}", "Consumers that are paused, or probing after a pause.")
  const level = gauge("requeue.consumer.backoff.level", "{level}", "How far the pauses have grown.")
  const backlog = gauge("requeue.queue.messages", "{message}", "Messages in the queue, as the broker reports them.")
  const connected = gauge("requeue.broker.connected", "{connection}", "1 while the broker can be reached, else 0.")
  return { consumers, states, inFlight, quarantined, paused, level, backlog, connected }
}

/** Makes the gauges of a meter. */
export const make = (meter: Meter): Gauges => {
  const queues = new Map<string, ObservedQueue>()
  const instruments = makeInstruments(meter)
  const { consumers, states, inFlight, quarantined, paused, level, backlog, connected } = instruments

  const observeQueue = async (result: BatchObservableResult, queue: ObservedQueue): Promise<void> => {
    const { last, members, where } = queue
    observeConsumers(
      result,
      where,
      Array.from(members, ({ health }) => health())
    )
    const [first] = members
    if (first !== undefined) {
      result.observe(connected, first.connection().state === "up" ? 1 : 0, Attributes.system(first.broker))
    }
    const counts = await Effect.runPromise(
      (first ?? last).counts.pipe(Effect.timeoutOption(countsTimeout), Effect.orElseSucceed(Option.none))
    )
    if (Option.isNone(counts)) return
    const { blocked, delayed, inFlight: taken, ready } = counts.value
    for (const [state, count] of Object.entries({ ready, delayed, in_flight: taken, blocked })) {
      if (count !== undefined) result.observe(backlog, count, { ...where, [Attributes.state]: state })
    }
  }

  const observeConsumers = (
    result: BatchObservableResult,
    where: Values,
    all: ReadonlyArray<Health.ConsumerHealth>
  ): void => {
    const isTaking = ({ state }: Health.ConsumerHealth) => state === "running" || state === "probing"
    result.observe(consumers, all.filter(isTaking).length, where)
    for (const state of consumerStates) {
      const count = all.filter((each) => each.state === state).length
      result.observe(states, count, { ...where, [Attributes.consumerState]: state })
    }
    result.observe(
      inFlight,
      all.reduce((sum, { buffered, inProgress }) => sum + buffered + inProgress, 0),
      where
    )
    result.observe(
      quarantined,
      all.reduce((sum, each) => sum + each.quarantined, 0),
      where
    )
    for (const because of ["handler", "broker", "operator"] as const) {
      const backoffs = all.flatMap(({ backoff }) => backoff.filter((each) => each.because === because))
      const which = { ...where, [Attributes.because]: because }
      result.observe(paused, backoffs.filter(({ state }) => state !== "running").length, which)
      result.observe(level, Math.max(0, ...backoffs.map((each) => each.level)), which)
    }
  }

  meter.addBatchObservableCallback(async (result) => {
    await Promise.all(Array.from(queues.values(), (queue) => observeQueue(result, queue)))
  }, Object.values(instruments))

  return {
    add: (consumer) => {
      const { broker, queue } = consumer
      const key = `${broker} ${queue}`
      const where = { ...Attributes.system(broker), [Attributes.destination]: queue }
      const { members } = queues.get(key) ?? { members: new Set() }
      members.add(consumer)
      queues.set(key, { where, members, last: consumer })
      return () => void members.delete(consumer)
    }
  }
}
