/**
 * A simulated nsqlookupd.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0 |
 * | --- | --- |
 * | it knows an nsqd and its topics while that is connected | `nsqlookupd/lookup_protocol_v1.go` |
 * | a topic that it has known stays known, perhaps without nsqd | `registration_db.go` |
 * | after its restart it knows nothing, until each nsqd connects again: at its next topic or channel, or within 15 s | `lookupLoop` in `nsqd/lookup.go` |
 */
import type { Host } from "../Host.ts"
import { failed, type Response } from "./HttpApi.ts"
import type { Nsqd } from "./Nsqd.ts"

export interface Lookupd {
  readonly isUp: () => boolean
  readonly request: (path: string) => Response
  /** Returns the channels of a topic on all nsqd. */
  readonly channels: (topic: string) => ReadonlyArray<string>
  /** Ends, and starts again after `away` milliseconds without knowing any nsqd. */
  readonly restart: (away: number) => void
  /** From now on answers what it has known until now, or the truth again. */
  readonly setStale: (isStale: boolean) => void
}

/** A registered nsqd, and where clients reach it. */
export interface Registered {
  readonly nsqd: Nsqd
  readonly host: string
  readonly port: number
  readonly httpPort: number
}

interface Known {
  readonly nodes: ReadonlyArray<Registered>
  readonly topics: ReadonlyMap<string, ReadonlyArray<Registered>>
}

/** Milliseconds between two attempts of an nsqd to connect. */
const interval = 15_000

const producerOf = ({ host, httpPort, nsqd, port }: Registered) => ({
  broadcast_address: host,
  hostname: nsqd.name,
  tcp_port: port,
  http_port: httpPort,
  version: nsqd.version
})

/** An nsqlookupd with which these nsqd are registered. */
export const make = (host: Host, all: ReadonlyArray<Registered>): Lookupd => {
  let isUp = true
  let stale: Known | undefined
  let connected: ReadonlySet<Registered> = new Set(all)
  const everKnown = new Set<string>()

  const connect = (one: Registered): void => {
    if (isUp && one.nsqd.isUp()) connected = new Set([...connected, one])
    for (const { name } of isUp && connected.has(one) ? one.nsqd.topics() : []) everKnown.add(name)
  }
  for (const one of all) {
    connect(one)
    one.nsqd.onChange.add(() => connect(one))
  }

  const current = (): Known => {
    const nodes = [...connected].filter(({ nsqd }) => nsqd.isUp())
    const having = (topic: string) => nodes.filter(({ nsqd }) => nsqd.existing(topic) !== undefined)
    return { nodes, topics: new Map([...everKnown].map((topic) => [topic, having(topic)])) }
  }
  const known = (): Known => stale ?? current()

  const answer = ({ pathname, searchParams }: URL): Omit<Response, "date"> => {
    const { nodes, topics } = known()
    if (pathname === "/nodes") {
      return { status: 200, body: JSON.stringify({ producers: nodes.map(producerOf) }) }
    }
    const found = pathname === "/lookup" ? topics.get(searchParams.get("topic") ?? "") : undefined
    if (found === undefined) return failed(404, "TOPIC_NOT_FOUND")
    return { status: 200, body: JSON.stringify({ channels: [], producers: found.map(producerOf) }) }
  }

  return {
    isUp: () => isUp,
    request: (path) => ({
      ...answer(new URL(path, "http://nsqlookupd")),
      date: Math.floor(host.now() / 1000) * 1000
    }),
    channels: (topic) =>
      (known().topics.get(topic) ?? []).flatMap(({ nsqd }) =>
        (nsqd.existing(topic)?.channels() ?? []).map(({ name }) => name)
      ),
    restart: (away) => {
      isUp = false
      stale = undefined
      connected = new Set()
      everKnown.clear()
      host.after(away, () => {
        isUp = true
        for (const one of all) host.after(host.random("lookupd") * interval, () => connect(one))
      })
    },
    setStale: (isStale) => {
      stale = isStale ? current() : undefined
    }
  }
}
