/** The shape of a delay topology. */
import { ConfigurationError, RetryPolicy } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"
import type { RabbitMqQueue } from "../../../RabbitMqQueue.ts"
import type { NativeObject } from "../objects.ts"
import { maxQueues } from "./ranges.ts"

/** The way of a message into a delay. */
export interface Route {
  readonly exchange: string
  readonly routingKey: string
  /** Headers that the route needs; consumers do not see them. */
  readonly headers: Readonly<Record<string, string>>
  /** The message's own TTL in milliseconds, in topologies that have one. */
  readonly expiration: number | undefined
  /** Milliseconds that the broker keeps the message: the delay that was asked for, or more. */
  readonly kept: number
  /** The objects that must exist. Routes that need the same share one array, so that the declarer knows it. */
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
  /** Milliseconds by which the queue itself delays the `count`th counted return. Default: it does not. */
  readonly native?: (count: number) => number
  /** The queue whose messages go round until they are due. Default: none. */
  readonly waiting?: string
  /** Changes an object that is not the topology's own. Default: none is changed. */
  readonly amend?: (object: NativeObject) => NativeObject
  /** The remedy where a queue is not there that the topology leaves to its consumer. Default: it leaves none. */
  readonly absent?: string
}

/** The queue that a topology is for, and the policy whose delays it keeps. */
export interface TopologyRequest {
  readonly queue: string
  /** `undefined` for a producer, which knows no policy. */
  readonly retry: RetryPolicy.RetryPolicy | undefined
  /** The queue as it is. Delays lead back to one that is not ours by the default exchange, which needs no binding. */
  readonly found: RabbitMqQueue
  readonly settings: Settings
  readonly serverVersion: string
}

/** Whether a policy may ask for a delay by itself. Handlers may do so under any policy. */
export const hasDelays = (retry: RetryPolicy.RetryPolicy | undefined): boolean =>
  retry !== undefined && RetryPolicy.schedule(retry).some(({ delay: [, high] }) => high > 0)

/** The error of a policy whose delays need more queues than `maxDelayQueues`. */
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
