/**
 * Native: the queue itself delays a message that failed, on RabbitMQ 4.3 and later. It writes no copy and keeps the order
 * of due times. But it can only delay linearly and without jitter, and its delays are arguments of the queue.
 * https://www.rabbitmq.com/docs/quorum-queues
 */
import { type Backoff, ConfigurationError } from "@requeue/core/adapter-kit"
import type * as Objects from "../objects.ts"
import * as Version from "../../version.ts"
import * as Levels from "./levels.ts"
import type { Topology, TopologyRequest } from "./topology.ts"

const refuse = (queue: string, field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq", queue })

/** The first and the longest delay of a backoff, in milliseconds; `undefined` for one that a queue cannot keep. */
const linear = (backoff: Backoff.Backoff | undefined): { readonly min: number; readonly max: number } | undefined => {
  if (backoff === undefined || backoff.jitter !== "none") return undefined
  const { curve, max } = backoff
  if (curve._tag === "Constant") return { min: Math.min(curve.delay, max), max: Math.min(curve.delay, max) }
  return curve._tag === "Linear" ? { min: Math.min(curve.step, max), max } : undefined
}

/** Fails for a server that cannot delay, and for a policy whose delays a queue cannot keep. */
export const make = ({
  found,
  queue,
  retry,
  serverVersion,
  settings
}: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  if (!Version.hasFailureCount(serverVersion)) {
    // Older servers accept the arguments, and then deliver failed messages at once until the limit drops them.
    const detail = `native delays need RabbitMQ 4.3, the server is ${serverVersion}`
    return refuse(queue, "topology", detail, `Upgrade the server, or set topology: "auto"`)
  }
  const levels = Levels.make({ found, queue, retry, serverVersion, settings })
  // A producer does not know the policy, and leaves the declaration to the consumer.
  if (retry === undefined) return { ...levels, name: "native", amend: leaveAlone(queue) }
  const delays = linear(retry.backoff)
  if (delays === undefined || delays.min === 0) {
    const detail = "a queue can only delay by constant or linear steps without jitter"
    return refuse(queue, "retry.backoff", detail, `Use Backoff.linear or Backoff.constant, or topology: "auto"`)
  }
  const { max, min } = delays
  const own = { "x-delayed-retry-type": "failed", "x-delayed-retry-min": min, "x-delayed-retry-max": max }
  const { arguments: args, isOurs } = found
  if (!isOurs && Object.entries(own).some(([name, value]) => args[name] !== value)) {
    // Without them, it would deliver what has failed at once.
    const told = Object.keys(own).map((name) => `${name}=${String(args[name] ?? "none")}`)
    const detail = `the queue is not declared, and it is not known to delay as the policy does: ${told.join(", ")}`
    return refuse(queue, "topology", detail, `Set topology: "auto"`)
  }
  return {
    ...levels,
    name: "native",
    notes: [
      "the policy's delays are arguments of the queue: another policy needs another queue, or a server policy",
      "other delays go through the levels"
    ],
    native: (count) => Math.min(min * Math.max(1, count), max),
    amend: (object) =>
      object._tag === "Queue" && object.name === queue
        ? { ...object, arguments: { ...object.arguments, ...own } }
        : object
  }
}

/** Makes the declaration of a queue a check that it exists. */
const leaveAlone =
  (queue: string) =>
  (object: Objects.NativeObject): Objects.NativeObject =>
    object._tag === "Queue" && object.name === queue ? { ...object, assert: "passive" } : object
