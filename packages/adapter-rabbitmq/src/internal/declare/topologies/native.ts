/**
 * Native: the queue itself delays a failed message, on RabbitMQ 4.3 and later. It writes no copy and keeps the order of due times.
 * But it can only delay linearly and without jitter, and its delays are arguments of the queue.
 * https://www.rabbitmq.com/docs/quorum-queues
 */
import { type Backoff, ConfigurationError } from "@requeue/core/port"
import type * as Objects from "../objects.ts"
import * as RabbitMqQueue from "../../../RabbitMqQueue.ts"
import * as Version from "../../version.ts"
import * as Others from "./others.ts"
import { hasDelays, type Topology, type TopologyRequest } from "./topology.ts"

const refuse = (queue: string, field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq", queue })

/** The arguments of a queue that delays as this backoff does; `undefined` if no queue can. */
const argumentsOf = ({ curve, jitter, max }: Backoff.Backoff): Objects.Arguments | undefined => {
  const first = curve._tag === "Constant" ? curve.delay : curve._tag === "Linear" ? curve.step : 0
  const min = Math.min(first, max)
  if (jitter !== "none" || min === 0) return undefined
  return {
    "x-delayed-retry-type": "failed",
    "x-delayed-retry-min": min,
    "x-delayed-retry-max": curve._tag === "Constant" ? min : max
  }
}

/** The error for a queue that is known to have other delays, or not known to have these. */
const mismatch = (
  { arguments: args, isOurs, name }: RabbitMqQueue.RabbitMqQueue,
  own: Objects.Arguments
): ConfigurationError.ConfigurationError | undefined => {
  const isOther = Object.entries(own).some(([key, value]) => args[key] !== value && (!isOurs || key in args))
  if (!isOther) return undefined
  // The queue would deliver failed messages too early.
  const told = Object.keys(own).map((key) => `${key}=${String(args[key] ?? "none")}`)
  const detail = isOurs
    ? "the queue has other delays"
    : "the adapter does not declare the queue, and its delays are not known"
  const remedy = isOurs ? "Give the policy these delays, or use another queue" : `Set topology: "auto"`
  return refuse(name, "topology", `${detail}: ${told.join(", ")}`, remedy)
}

/**
 * Fails if the server cannot delay, or if a queue cannot keep the policy's delays.
 *
 * Only the consumer knows the policy, so only the consumer declares the queue. Producers need it to exist.
 */
export const make = (request: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  const { found, queue, retry, serverVersion } = request
  if (!Version.hasFailureCount(serverVersion)) {
    // Older servers accept the arguments, but deliver failed messages at once until the limit drops them.
    const detail = `native delays need RabbitMQ 4.3, the server is ${serverVersion}`
    return refuse(queue, "topology", detail, `Upgrade the server, or set topology: "auto"`)
  }
  // The policy's delays need no objects. Other delays go through levels.
  const levels = { name: "native", objects: [], ...Others.make(request) }
  const amended = (change: Partial<Objects.NativeQueue>, args: Objects.Arguments = {}) => ({
    amend: (object: Objects.NativeObject): Objects.NativeObject =>
      object._tag === "Queue" && object.name === queue
        ? { ...object, ...change, arguments: { ...object.arguments, ...args } }
        : object
  })
  const isTold = found.arguments["x-delayed-retry-type"] !== undefined
  if (retry === undefined) {
    const absent = "Start its consumer first, or run requeue create with its policy: the delays belong to the queue"
    return isTold || !found.isOurs ? levels : { ...levels, absent, ...amended({ assert: "passive" }) }
  }
  if (!hasDelays(retry)) return levels
  const own = retry.backoff && argumentsOf(retry.backoff)
  if (own === undefined) {
    const detail = "a queue can only delay by constant or linear steps without jitter"
    return refuse(queue, "retry.backoff", detail, `Use Backoff.linear or Backoff.constant, or topology: "auto"`)
  }
  const native = RabbitMqQueue.delays({ type: "quorum", arguments: own }, serverVersion)!
  return (
    mismatch(found, own) ?? {
      ...levels,
      notes: ["the policy's delays are arguments of the queue: another policy needs another queue", ...levels.notes],
      native,
      ...amended({}, own)
    }
  )
}
