/** The shape of a delay topology. */
import { ConfigurationError, RetryPolicy } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"
import type { RabbitMqQueue } from "../../../RabbitMqQueue.ts"
import type { NativeObject } from "../objects.ts"
import { maxQueues } from "./ranges.ts"

/** The route of a message into a delay. */
export interface Route {
  readonly exchange: string
  readonly routingKey: string
  /** Headers that the route needs. Consumers do not see them. */
  readonly headers: Readonly<Record<string, string>>
  /** The message's own TTL in milliseconds, in topologies that have one. */
  readonly expiration: number | undefined
  /** Milliseconds for which the broker keeps the message: the requested delay or more. */
  readonly kept: number
  /** The objects that must exist. Routes that need the same objects share one array, which the declarer recognises. */
  readonly objects: ReadonlyArray<NativeObject>
}

/** How the delays of one queue are kept. */
export interface Topology {
  readonly name: string
  /** The objects that must exist before the first delivery. */
  readonly objects: ReadonlyArray<NativeObject>
  /** The objects of delays that the policy does not have, if they are known. Default: those of the longest delay. */
  readonly others?: ReadonlyArray<NativeObject>
  /** Whether each further delay declares a queue, without a limit. Default: false. */
  readonly isUnbounded?: boolean
  /** The worst lateness of the policy's delays in words. Default: none that matters. */
  readonly lateness?: string | undefined
  /** Notes for people, such as of head-of-line blocking. */
  readonly notes: ReadonlyArray<string>
  /** The route of a message that must not arrive before `delay` milliseconds (> 0) have passed. */
  readonly route: (delay: number) => Route
  /** Milliseconds by which the queue delays a message that returns for the `count`th time. Default: it does not delay. */
  readonly native?: (count: number) => number
  /** The queue whose messages circulate until they are due. Default: none. */
  readonly waiting?: string
  /** Changes an object outside the topology. Default: changes nothing. */
  readonly amend?: (object: NativeObject) => NativeObject
  /** The remedy if a queue is missing that only its consumer declares. Default: there is no such queue. */
  readonly absent?: string
}

/** The queue that a topology is for, and the policy whose delays it keeps. */
export interface TopologyRequest {
  readonly queue: string
  /** `undefined` for a producer, which knows no policy. */
  readonly retry: RetryPolicy.RetryPolicy | undefined
  /** The queue as it is. Delays return to a queue that is not ours through the default exchange, which needs no binding. */
  readonly found: RabbitMqQueue
  readonly settings: Settings
  readonly serverVersion: string
}

/** Whether a policy has delays. Handlers may ask for delays under any policy. */
export const hasDelays = (retry: RetryPolicy.RetryPolicy | undefined): boolean =>
  retry !== undefined && RetryPolicy.schedule(retry).some(({ delay: [, high] }) => high > 0)

/** The error for a policy whose delays need more queues than `maxDelayQueues`. */
export const tooMany = (queue: string, limit: number, needed: number): ConfigurationError.ConfigurationError => {
  const isPossible = needed <= maxQueues
  return new ConfigurationError.ConfigurationError({
    field: "maxDelayQueues",
    queue,
    broker: "rabbitmq",
    detail: `the delays of the retry policy need ${isPossible ? needed : `more than ${maxQueues}`} queues, the limit is ${limit}`,
    remedy:
      `${isPossible ? `Set maxDelayQueues: ${needed}, give` : "Give"} the policy fewer delays, ` +
      'or set topology: "perMessageTtl", which has one queue'
  })
}
