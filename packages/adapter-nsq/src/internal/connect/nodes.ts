/** The known nsqd and their limits. */
import { type BrokerError, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import { type Address, hostPort } from "../address.ts"
import type { Driver, Identity } from "../driver.ts"
import * as Http from "../http.ts"
import * as Limits from "../limits.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as NsqdClock from "./nsqdClock.ts"

/** One address of an nsqd. Each address has one object, comparable by identity. */
export interface Node {
  /** `host:port`. */
  readonly name: string
  readonly address: Address
  readonly clock: NsqdClock.NsqdClock
  /** Identity of the nsqd, equal for all its addresses; `undefined` while unknown. */
  identity?: string | undefined
}

/** Whether two addresses are known to belong to the same nsqd. */
export const isSame = (one: Node, other: Node): boolean =>
  one === other || (one.identity !== undefined && one.identity === other.identity)

/** Returns the first address of each nsqd. */
export const distinct = (all: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  all.filter((node, index) => all.findIndex((other) => isSame(other, node)) === index)

/** nsqd creates topics and channels one after the other, and slower the more it has: the last answer must come in time. */
const maxSubscribing = 64

/** An nsqd to which a part of this process is connected or tries to connect. */
interface Use {
  readonly node: Node
  /** Whether the connection is open now. */
  readonly isUp: boolean
}

export interface Nodes {
  /** Returns the nsqd at an address. */
  readonly at: (address: Address) => Node
  /** The nsqd of the options; nsqlookupd may report others. */
  readonly given: ReadonlyArray<Node>
  /** Each function returns the nsqd that a part of this process uses. */
  readonly used: Set<() => ReadonlyArray<Use>>
  /** Limits the consumers that subscribe to an nsqd at the same time. */
  readonly subscribing: (node: Node) => Semaphore.Semaphore
  /** Learns a limit from the text with which an nsqd refused a publish, until `forget`. */
  readonly refused: (node: Node, text: string) => void
  /** Learns the size in bytes of a message that an nsqd has stored. */
  readonly stored: (node: Node, size: number) => void
  /** Returns the size in bytes of the largest message that an nsqd has stored. */
  readonly largest: (node: Node) => number
  /** Forgets what an nsqd has refused: it may have restarted with other limits. */
  readonly forget: (node: Node) => void
  /** Learns the limits of an nsqd after a connection has opened. */
  readonly learn: (node: Node, identity: Identity) => Effect.Effect<void, BrokerError.BrokerError>
  /** Learns the identity of each of these nsqd, if its HTTP interface answers. */
  readonly identify: (all: ReadonlyArray<Node>) => Effect.Effect<void>
  /** Whether the limits of an nsqd have been learned. */
  readonly isKnown: (node: Node) => boolean
  /** Returns the lowest limits of all nsqd that have been learned. */
  readonly limits: () => Limits.Limits
}

/**
 * Learns the identity and time of the nsqd at an address. Keeps the old identity if it does not answer. Returns the identity of the
 * answer.
 */
const inquire = (node: Node, access: Http.Access, elapsed: () => number): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const { address, clock } = node
    const asked = elapsed()
    if (address.http === undefined) return Effect.undefined
    return Effect.map(NsqdHttp.info(address.http, access), ({ date, identity }) => {
      node.identity = identity ?? node.identity
      if (date !== undefined) clock.dated(date, asked, elapsed())
      return identity
    })
  })

/** Starts with the nsqd of the options, without limits. `elapsed` returns monotonic milliseconds. */
// Long, because its functions share what is known.
export const make = (settings: Settings, driver: Driver, elapsed: () => number): Nodes => {
  const access = { driver, settings }
  const known = new Map<string, Node>()
  /** The configuration that each nsqd has reported, and its identity then. */
  const reports = new Map<string, { readonly configured: Limits.Configured; readonly identity: string | undefined }>()
  const limits = new Map<string, Limits.Limits>()
  /** The limits learned from the refusals of each nsqd. */
  const refusals = new Map<string, Limits.Configured>()
  const largest = new Map<string, number>()
  const told = new Map<string, string>()
  const subscribing = new Map<string, Semaphore.Semaphore>()

  const at = (address: Address): Node => {
    const name = hostPort(address)
    const found = known.get(name) ?? { name, address, clock: NsqdClock.make() }
    known.set(name, found)
    return found
  }

  /** Returns the configuration of an nsqd, which it reads at its start: it is requested again if nsqd may have restarted. */
  const configured = Effect.fnUntraced(function* (node: Node) {
    const { address, name } = node
    if (address.http === undefined) return {}
    const before = reports.get(name)
    const identified = inquire(node, access, elapsed)
    const requested = NsqdHttp.configured(address.http, access)
    if (before === undefined) {
      const both = Effect.all([identified, requested], { concurrency: "unbounded" })
      const [identity, configured] = yield* Effect.mapError(both, (error) => Http.unreachable(address.http!, error))
      reports.set(name, { configured, identity })
      return configured
    }
    const identity = yield* identified
    if (identity !== undefined && identity === before.identity) return before.configured
    const found = yield* Effect.option(requested)
    if (found._tag === "None") return before.configured
    reports.set(name, { configured: found.value, identity })
    return found.value
  })

  /** Logs requested features that a connection lacks, once until they change. */
  const tell = ({ name }: Node, notes: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const text = notes.join("; ")
      if (text === (told.get(name) ?? "")) return Effect.void
      told.set(name, text)
      return text === "" ? Effect.void : Log.warning(text, { nsqd: name })
    })

  return {
    at,
    given: settings.nsqd.map(at),
    used: new Set(),
    subscribing: ({ name }) => {
      const found = subscribing.get(name) ?? Semaphore.makeUnsafe(maxSubscribing)
      subscribing.set(name, found)
      return found
    },
    refused: ({ name }, text) => {
      const before = limits.get(name)
      if (before === undefined) return
      const said = Limits.refused(text)
      refusals.set(name, { ...refusals.get(name), ...said })
      limits.set(name, Limits.least(before, { ...before, ...said }))
    },
    stored: ({ name }, size) => void (size > (largest.get(name) ?? 0) && largest.set(name, size)),
    largest: ({ name }) => largest.get(name) ?? 0,
    forget: ({ name }) => void refusals.delete(name),
    learn: (node, identity) =>
      Effect.andThen(
        tell(node, identity.notes),
        Effect.map(configured(node), (found) => {
          const all = { ...refusals.get(node.name), ...found }
          limits.set(node.name, Limits.of(identity, all, settings))
        })
      ),
    identify: (all) =>
      Effect.forEach(all, (node) => inquire(node, access, elapsed), { concurrency: "unbounded", discard: true }),
    isKnown: ({ name }) => limits.has(name),
    limits: () => {
      const [first, ...others] = limits.values()
      if (first === undefined) throw new Error("Nodes.limits: asked before the first connection")
      return Limits.least(first, ...others)
    }
  }
}
