/** Makes topics and channels before they are first published to. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"

/** Makes a queue's topic and channel on an nsqd. It does so once; with `create: false` or `http: false` it never does. */
export type Declare = (node: Node, queue: Queue) => Effect.Effect<void, BrokerError.BrokerError>

/** Requests that are under way at the same time. */
const concurrency = 16

export const make = ({ create, requestTimeout }: Settings): Effect.Effect<Declare> =>
  Effect.map(Semaphore.make(concurrency), (requests) => {
    const declared = new Set<string>()
    return (node, queue) =>
      Effect.suspend(() => {
        const { http } = node.address
        const key = `${node.name} ${queue.topic} ${queue.channel}`
        if (http === undefined || !create || declared.has(key)) return Effect.void
        return Effect.tap(requests.withPermits(1)(NsqdHttp.create(http, queue, requestTimeout)), () =>
          Effect.sync(() => declared.add(key))
        )
      })
  })
