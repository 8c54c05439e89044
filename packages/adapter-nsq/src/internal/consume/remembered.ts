/**
 * What this process knows of messages that may come again, and what their next delivery does not tell.
 *
 * `REQ` carries no metadata, and an nsqd that restarts forgets what it held back. `FIN` has no answer: a message that is
 * done with may come once more, because nsqd has not heard of it, or because another nsqd has its twin.
 */
import { type Delivery, BoundedMap } from "@requeue/core/adapter-kit"
import * as Due from "./due.ts"
import type { Queue } from "../names.ts"
import type { Node } from "../connect/nodes.ts"
import type { Session } from "./session.ts"

/** Of one topic on one nsqd: ids are unique there. A retry copy may well have its original's, from another topic. */
export interface Memory {
  readonly due: Due.Due
  readonly finished: BoundedMap.BoundedMap<true>
}

/** Messages of a topic on an nsqd that are remembered. */
const limits = { requeued: 100_000, finished: 20_000 }

/** Of the topic and the nsqd of a session; outlives it. */
export const make = (): ((session: Session) => Memory) => {
  const known = new Map<Queue, Map<Node, Memory>>()
  return ({ node, topic }) => {
    const found = known.get(topic)?.get(node)
    if (found !== undefined) return found
    const made = { due: Due.make(limits.requeued), finished: BoundedMap.make<true>(limits.finished) }
    known.set(topic, (known.get(topic) ?? new Map<Node, Memory>()).set(node, made))
    return made
  }
}

export interface Twins {
  /** Its publish is done with, and no copy of it is to come. */
  readonly finished: (delivery: Delivery.Delivery) => void
  readonly isFinished: (delivery: Delivery.Delivery) => boolean
}

/** The same for both copies of one publish. */
const publishOf = ({ metadata: { firstPublished, id, redrives } }: Delivery.Delivery): string =>
  `${firstPublished} ${redrives} ${id}`

/** Of publishes that are on two nsqd. */
export const twins = (): Twins => {
  const over = BoundedMap.make<true>(limits.finished)
  return {
    finished: (delivery) => over.set(publishOf(delivery), true),
    isFinished: (delivery) => over.has(publishOf(delivery))
  }
}
