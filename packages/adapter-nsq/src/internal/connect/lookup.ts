/** Finding nsqd: every nsqlookupd is asked, and an nsqd that any of them knows is found. */
import { type BrokerError, Failure } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Discovered, Settings } from "../../NsqOptions.ts"
import { type Address, hostPort, isHost, isPort } from "../address.ts"
import * as Http from "../http.ts"

export interface Lookup {
  /** The nsqd that have a topic; `undefined` when no nsqlookupd answers. */
  readonly topic: (name: string) => Effect.Effect<ReadonlyArray<Address> | undefined>
  /** All nsqd; `undefined` when no nsqlookupd answers. */
  readonly all: Effect.Effect<ReadonlyArray<Address> | undefined>
}

/** https://nsq.io/components/nsqlookupd.html#get-lookup */
const toDiscovered = (json: unknown): ReadonlyArray<Discovered> => {
  const producers: unknown = Predicate.isReadonlyObject(json) ? json["producers"] : undefined
  if (!Array.isArray(producers)) return []
  return producers
    .filter(Predicate.isReadonlyObject)
    .flatMap(({ broadcast_address: host, hostname, http_port, tcp_port: port, version }) =>
      typeof host === "string" && typeof port === "number"
        ? [
            {
              host,
              port,
              httpPort: typeof http_port === "number" ? http_port : port + 1,
              hostname: String(hostname),
              version: String(version)
            }
          ]
        : []
    )
}

/** Where an nsqd is connected to; `undefined` for nowhere. Throws what the user's function throws. */
const resolve = (found: Discovered, { http, httpTls, resolveAddress }: Settings): Address | undefined => {
  const resolved = resolveAddress === undefined ? found : resolveAddress(found)
  if (resolved === undefined) return undefined
  const { host, httpPort, port } = resolved
  if (!isHost(host) || !isPort(port)) {
    const by = resolveAddress === undefined ? "nsqlookupd" : "resolveAddress"
    throw new TypeError(`${by} must answer a host and a port that can be connected to`)
  }
  const url = http && isPort(httpPort) ? `http://${hostPort({ host, port: httpPort })}` : undefined
  return { host, port, http: url === undefined ? undefined : { url, tls: httpTls } }
}

/** Asks the nsqlookupd of the options. Each outage of one of them is logged once. */
export const make = (settings: Settings): Lookup => {
  const { lookupd, requestTimeout } = settings
  /** The nsqlookupd that did not answer when they were asked last. */
  const down = new Set<string>()
  /** The nsqd whose address is unusable, or for which `resolveAddress` has failed. */
  const unresolved = new Set<string>()

  const log = (base: string, error: BrokerError.BrokerError | undefined): Effect.Effect<void> => {
    if (error === undefined) {
      return down.delete(base) ? Effect.annotateLogs(Effect.logInfo("nsqlookupd answers again"), { base }) : Effect.void
    }
    if (down.has(base)) return Effect.void
    down.add(base)
    return Effect.annotateLogs(Effect.logWarning("nsqlookupd does not answer"), { base, error: error.message })
  }

  /** The address of an nsqd. One that cannot be connected to is left out, and logged once. */
  const addressOf = (found: Discovered): Effect.Effect<ReadonlyArray<Address>> =>
    Effect.suspend(() => {
      const nsqd = JSON.stringify(hostPort(found).slice(0, 300))
      try {
        const address = resolve(found, settings)
        unresolved.delete(nsqd)
        return Effect.succeed(address === undefined ? [] : [address])
      } catch (cause) {
        const logged = unresolved.has(nsqd)
        unresolved.add(nsqd)
        const error = Failure.summarize(cause).message
        const line = Effect.annotateLogs(Effect.logWarning("an nsqd that nsqlookupd names is left out"), {
          nsqd,
          error
        })
        return Effect.as(logged ? Effect.void : line, [])
      }
    })

  const ask = (path: string): Effect.Effect<ReadonlyArray<Address> | undefined> =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach(
        lookupd,
        (base) =>
          Effect.tap(Effect.result(Http.request({ operation: "lookup" }, requestTimeout, { base, path })), (answer) =>
            log(base.url, Result.isFailure(answer) ? answer.failure : undefined)
          ),
        { concurrency: "unbounded" }
      )
      const known = answers.filter(Result.isSuccess)
      if (known.length === 0) return undefined
      const found = known.flatMap(({ success }) => (success === Http.missing ? [] : toDiscovered(success)))
      const addresses = yield* Effect.forEach(found, addressOf)
      return [...new Map(addresses.flat().map((address) => [hostPort(address), address])).values()]
    })

  return {
    topic: (name) => ask(`lookup?${new URLSearchParams({ topic: name }).toString()}`),
    all: ask("nodes")
  }
}
