/** How the core passes on the facts of a message. */
import type { Message } from "@requeue/core/port"
import type { Node } from "./connect/nodes.ts"
import type { Frame } from "./consume/toDelivery.ts"
import type { Queue } from "./names.ts"

/** The name under which the core passes them on. */
export const broker = "nsq"

/** The facts of a message that an nsqd has delivered. */
export const told = (
  { attempts, id, timestamp }: Frame,
  { node, topic: { channel, topic } }: { readonly node: Node; readonly topic: Queue }
): Message.Native => {
  const facts = { nsqd: node.name, topic, channel, id, timestamp: Number(timestamp / 1_000_000n), attempts }
  return Object.freeze({ [broker]: Object.freeze(facts) })
}
