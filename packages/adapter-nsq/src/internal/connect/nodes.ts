/** The nsqd that are known, and what they allow. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import { type Address, hostPort } from "../address.ts"
import type { Identity } from "../client.ts"
import * as Http from "../http.ts"
import * as Limits from "../limits.ts"
import type { Queue } from "../names.ts"
import * as Nsqd from "../inspect/stats.ts"

export interface Node {
  /** `host:port`. */
  readonly name: string
  readonly address: Address
}

export interface Nodes {
  readonly at: (address: Address) => Node
  /** Those that are given, not found. */
  readonly given: ReadonlyArray<Node>
  /** Learns what a node allows that has just been connected to. */
  readonly learn: (node: Node, identity: Identity) => Effect.Effect<void, BrokerError.BrokerError>
  readonly isKnown: (node: Node) => boolean
  /** What all of them allow that have been connected to. */
  readonly limits: () => Limits.Limits
  /** Makes the queue's topic and channel on the node, unless that was done before. */
  readonly ensure: (node: Node, queue: Queue) => Effect.Effect<void, BrokerError.BrokerError>
}

export const make = (settings: Settings): Effect.Effect<Nodes> =>
  Effect.map(Semaphore.make(16), (requests) => {
    const { create, requestTimeout } = settings
    const known = new Map<string, Node>()
    const limits = new Map<string, Limits.Limits>()
    const made = new Set<string>()

    const at = (address: Address): Node => {
      const name = hostPort(address)
      const found = known.get(name) ?? { name, address }
      known.set(name, found)
      return found
    }

    const configured = ({
      address: { http },
      name
    }: Node): Effect.Effect<Limits.Configured, BrokerError.BrokerError> => {
      if (http === undefined) return Effect.succeed({})
      const before = limits.get(name)
      const failed = (error: BrokerError.BrokerError) =>
        before === undefined ? Effect.fail(Http.unreachable(http, error)) : Effect.succeed(before)
      return Nsqd.configured(http, requestTimeout).pipe(Effect.catch(failed))
    }

    return {
      at,
      given: settings.nsqd.map(at),
      learn: (node, identity) =>
        Effect.map(configured(node), (found) => void limits.set(node.name, Limits.of(identity, found, settings))),
      isKnown: ({ name }) => limits.has(name),
      limits: () => {
        const [first, ...others] = limits.values()
        if (first === undefined) throw new Error("Nodes.limits: asked before the first connection")
        return Limits.least(first, ...others)
      },
      ensure: (node, queue) =>
        Effect.suspend(() => {
          const { http } = node.address
          const key = `${node.name} ${queue.topic} ${queue.channel}`
          if (http === undefined || !create || made.has(key)) return Effect.void
          return Effect.tap(requests.withPermits(1)(Nsqd.create(http, queue, requestTimeout)), () =>
            Effect.sync(() => made.add(key))
          )
        })
    }
  })
