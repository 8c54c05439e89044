/** NSQ's facts about a message, in the core's form. */
import type { Message } from "@requeue/core/port"
import type { Node } from "./connect/nodes.ts"
import type { Frame } from "./consume/toDelivery.ts"
import type { Queue } from "./names.ts"

/** The key of the facts in a message's `native`. */
export const broker = "nsq"

/** Returns the facts of a delivered message. */
export const told = (
  { attempts, id, timestamp }: Frame,
  { node, topic: { channel, topic } }: { readonly node: Node; readonly topic: Queue }
): Message.Native => {
  const facts = { nsqd: node.name, topic, channel, id, timestamp: Number(timestamp / 1_000_000n), attempts }
  return Object.freeze({ [broker]: Object.freeze(facts) })
}
