/**
 * Native: the queue itself delays a message that failed, from RabbitMQ 4.3 on. No copy is written and the order by due
 * time is kept; but a queue can only delay linearly, without jitter, and the delays are the queue's arguments.
 */
import { type Backoff, ConfigurationError } from "@requeue/core/adapter-kit"
import type * as Objects from "../objects.ts"
import * as Version from "../../version.ts"
import * as Levels from "./levels.ts"
import type { Request, Topology } from "./topology.ts"

const refuse = (queue: string, field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq", queue })

/** First and longest delay of a backoff that a queue can keep by itself. */
const linear = (backoff: Backoff.Backoff | undefined): { readonly min: number; readonly max: number } | undefined => {
  if (backoff === undefined || backoff.jitter !== "none") return undefined
  const { curve, max } = backoff
  if (curve._tag === "Constant") return { min: Math.min(curve.delay, max), max: Math.min(curve.delay, max) }
  return curve._tag === "Linear" ? { min: Math.min(curve.step, max), max } : undefined
}

export const make = ({
  queue,
  retry,
  serverVersion,
  settings
}: Request): Topology | ConfigurationError.ConfigurationError => {
  if (!Version.hasFailureCount(serverVersion)) {
    // Older servers take the arguments silently and then deliver failed messages at once, until the limit drops them.
    const detail = `native delays need RabbitMQ 4.3, the server is ${serverVersion}`
    return refuse(queue, "topology", detail, `Upgrade the server, or set topology: "auto"`)
  }
  const levels = Levels.make({ queue, retry, serverVersion, settings })
  // A producer does not know the policy; it declares nothing that the consumer would declare otherwise.
  if (retry === undefined) return { ...levels, name: "native", amend: leaveAlone(queue) }
  const delays = linear(retry.backoff)
  if (delays === undefined || delays.min === 0) {
    const detail = "a queue can only delay by constant or linear steps without jitter"
    return refuse(queue, "retry.backoff", detail, `Use Backoff.linear or Backoff.constant, or topology: "auto"`)
  }
  const { max, min } = delays
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
        ? {
            ...object,
            arguments: {
              ...object.arguments,
              "x-delayed-retry-type": "failed",
              "x-delayed-retry-min": min,
              "x-delayed-retry-max": max
            }
          }
        : object
  }
}

const leaveAlone =
  (queue: string) =>
  (object: Objects.Object): Objects.Object =>
    object._tag === "Queue" && object.name === queue ? { ...object, assert: "passive" } : object
