/**
 * One retry queue whose messages each have a TTL, for systems that have it already. A message waits at least as long as those in
 * front of it, because RabbitMQ expires only the head of a queue.
 * https://www.rabbitmq.com/docs/ttl#per-message-ttl-caveats
 */
import { ConfigurationError } from "@requeue/core/port"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Topology, TopologyRequest } from "./topology.ts"

const blocking = "head-of-line blocking: a delayed message waits at least as long as those in front of it"

/** One retry queue with its exchanges for each queue. */
export const own = ({ found, queue, settings }: TopologyRequest): Topology => {
  const named = (name: "workExchange" | "retryExchange" | "retryQueue", otherwise: string) =>
    Names.fill(settings.names[name] ?? otherwise, queue)
  const work = named("workExchange", "{queue}.work")
  const retry = named("retryExchange", "{queue}.retry")
  const waiting = named("retryQueue", Names.delayQueues.perMessageTtl)
  const { assert } = settings
  const objects = [
    ...(found.isOurs ? [Objects.exchange(work, "direct", Names.undelivered(settings), assert)] : []),
    Objects.exchange(retry, "fanout", undefined, assert),
    Objects.delayQueue(waiting, settings, { exchange: found.isOurs ? work : "", key: queue }, assert),
    ...(found.isOurs ? [Objects.binding(work, queue, queue)] : []),
    Objects.binding(retry, waiting, "", {}, assert)
  ]
  return {
    name: "perMessageTtl",
    objects,
    notes: [blocking],
    route: (delay) => ({ exchange: retry, routingKey: queue, headers: {}, expiration: delay, kept: delay, objects })
  }
}

/**
 * One retry queue with an exchange before and after it, which all queues share. The adapter cannot bind a queue that it does not
 * declare, so such a queue needs the binding of another program, and this topology is refused if the adapter declares the rest.
 */
export const shared = ({
  found,
  queue,
  settings
}: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  if (!found.isOurs && settings.assert === "declare")
    return new ConfigurationError.ConfigurationError({
      field: "topology",
      queue,
      broker: "rabbitmq",
      detail: "perMessageTtlShared leads back through an exchange, and a queue that is not declared is not bound to it",
      remedy: `Set topology: "auto"`
    })
  const before = Names.fill(settings.names.retryExchange ?? `${Names.own(settings)}pre-retry`, queue)
  const after = Names.fill(settings.names.workExchange ?? `${Names.own(settings)}post-retry`, queue)
  const waiting = Names.fill(settings.names.retryQueue ?? `${Names.own(settings)}retry`, queue)
  const { assert } = settings
  const objects = [
    Objects.exchange(before, "fanout", undefined, assert),
    Objects.exchange(after, "direct", Names.undelivered(settings), assert),
    Objects.delayQueue(waiting, settings, { exchange: after }, assert),
    Objects.binding(before, waiting, "", {}, assert),
    Objects.binding(after, queue, queue, {}, assert)
  ]
  return {
    name: "perMessageTtlShared",
    objects,
    notes: [`${blocking}, of any queue`],
    route: (delay) => ({ exchange: before, routingKey: queue, headers: {}, expiration: delay, kept: delay, objects })
  }
}
