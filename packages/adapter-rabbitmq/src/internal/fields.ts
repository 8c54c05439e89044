/** The kinds of the options that a URL and a config file can have, too. `RabbitMqOptions` says what they mean. */
import { Delay, OptionKind } from "@requeue/core/port"
import { OptionTree } from "@requeue/kit"

const topology = OptionKind.oneOf([
  "auto",
  "ladder",
  "levels",
  "perMessageTtl",
  "perMessageTtlShared",
  "perDelayQueue",
  "waitLoop",
  "native"
])
const names = OptionTree.struct({
  delayQueue: OptionTree.optional(OptionKind.nonEmpty),
  retryQueue: OptionTree.optional(OptionKind.nonEmpty),
  retryExchange: OptionTree.optional(OptionKind.nonEmpty),
  workExchange: OptionTree.optional(OptionKind.nonEmpty),
  waitingQueue: OptionTree.optional(OptionKind.nonEmpty)
})
const anything: OptionKind.OptionKind = { expected: "any value", holds: () => true }

/** Arguments of a native object, such as `x-max-priority`. */
const Arguments = OptionTree.record(anything)

/** A binding of a queue. */
export const binding = OptionTree.struct({
  exchange: OptionKind.nonEmpty,
  routingKey: OptionTree.optional(OptionKind.text),
  arguments: OptionTree.optional(Arguments)
})

/** How a queue is made sure of: it is declared, only looked for (`passive`), or never touched. */
const Assert = OptionKind.oneOf(["declare", "passive", "never"])

/** An exchange of the user's own. */
export const exchange = OptionTree.struct({
  type: OptionKind.nonEmpty,
  arguments: OptionTree.optional(Arguments),
  assert: OptionTree.optional(Assert)
})

/** A queue. */
export const queue = OptionTree.struct({
  type: OptionTree.optional(OptionKind.oneOf(["quorum", "classic"])),
  deliveryLimit: OptionTree.optional(OptionKind.whole(10, 1_000_000)),
  exclusive: OptionTree.optional(OptionKind.flag),
  consumerPriority: OptionTree.optional(OptionKind.whole(-1_000_000, 1_000_000)),
  bindings: OptionTree.optional(OptionTree.list(binding)),
  assert: OptionTree.optional(Assert),
  arguments: OptionTree.optional(Arguments)
})

export const fields = {
  auth: OptionKind.oneOf(["plain", "external"]),
  connectionName: OptionKind.nonEmpty,
  heartbeat: Delay.kind(1000, 60_000),
  connectTimeout: Delay.kind(100, 120_000),
  requestTimeout: Delay.kind(100, 120_000),
  publishTimeout: Delay.kind(100, 120_000),
  reconnectFirst: Delay.kind(1, 60_000),
  reconnectMax: Delay.kind(1, 120_000),
  maxUnconfirmed: OptionKind.whole(1, 65_535),
  queueType: OptionKind.oneOf(["quorum", "classic"]),
  deliveryLimit: OptionKind.whole(10, 1_000_000),
  maxBodySize: OptionKind.whole(1, 512 * 1024 * 1024),
  topology,
  resolution: Delay.kind(10, 1000),
  maxDelayQueues: OptionKind.whole(1, 128),
  maxOtherDelayQueues: OptionKind.whole(4, 128),
  prefix: OptionKind.matching("1 to 40 letters, digits, _, . and -", /^[A-Za-z0-9_.-]{1,40}$/),
  assert: Assert,
  management: OptionKind.nonEmpty,
  names,
  hosts: OptionTree.list(OptionKind.matching("host or host:port", /^(\[[0-9a-fA-F:]+\]|[^\s:/@]+)(:\d{1,5})?$/)),
  exchanges: OptionTree.record(exchange),
  queues: OptionTree.record(queue)
}
