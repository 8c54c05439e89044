/** Finds nsqd: asks every nsqlookupd, and combines their answers. */
import { BrokerError, Failure, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Discovered, Settings } from "../../NsqOptions.ts"
import { type Address, hostPort, type HttpInterface, isHost, isPort } from "../address.ts"
import type { Driver } from "../driver.ts"
import * as Http from "../http.ts"

/** The answers of all nsqlookupd. */
export interface Found {
  /** `undefined` when none of them answers. */
  readonly nsqd: ReadonlyArray<Address> | undefined
  /** The errors of those that do not answer. */
  readonly failures: ReadonlyArray<BrokerError.BrokerError>
}

export interface Lookup {
  /** Returns the nsqd that have a topic. */
  readonly topic: (name: string) => Effect.Effect<Found>
  /** Returns all nsqd. */
  readonly all: Effect.Effect<Found>
}

/** Maximum number of nsqd taken from one request. */
const most = 1000

/** https://nsq.io/components/nsqlookupd.html#get-lookup */
const toDiscovered = (json: unknown): ReadonlyArray<Discovered> | undefined => {
  const producers: unknown = Predicate.isReadonlyObject(json) ? json["producers"] : undefined
  if (json === Http.missing) return []
  if (!Array.isArray(producers)) return undefined
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

/** Returns at most `most` nsqd, always the same: nsqlookupd reports them in any order. */
const bounded = (all: ReadonlyMap<string, Discovered>): ReadonlyArray<Discovered> =>
  [...all]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, most)
    .map(([, found]) => found)

/** Returns the address to connect to; `undefined` to skip the nsqd. Throws what the user's function throws. */
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

const away = ({ detail, operation, reason }: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    reason,
    detail: `nsqlookupd does not answer: ${detail}`,
    remedy: "Start nsqlookupd, or check its address in lookupd, and httpTls if it is behind TLS"
  })

/** Makes a lookup over the nsqlookupd of the options. Logs each outage once. */
export const make = (settings: Settings, driver: Driver): Lookup => {
  const { lookupd } = settings
  /** The nsqlookupd that did not answer the last request. */
  const down = new Set<string>()
  /** The nsqd whose address is unusable, or for which `resolveAddress` has failed. */
  const unresolved = new Set<string>()
  /** Whether too many nsqd have been logged. */
  let isTold = false

  const log = (base: string, error: BrokerError.BrokerError | undefined): Effect.Effect<void> => {
    if (error === undefined) {
      return down.delete(base) ? Log.info("nsqlookupd answers again", { base }) : Effect.void
    }
    if (down.has(base)) return Effect.void
    down.add(base)
    return Log.warning("nsqlookupd does not answer", { base, errorMessage: error.message })
  }

  const logRest = (count: number): Effect.Effect<void> => {
    if (isTold || count <= most) return Effect.void
    isTold = true
    return Log.warning(`nsqlookupd names ${count} nsqd; all but ${most} are left out`)
  }

  /** Returns the address of an nsqd. An unusable one is left out and logged once. */
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
        const line = Log.warning("an nsqd that nsqlookupd names is left out", { nsqd, errorMessage: error })
        return Effect.as(logged ? Effect.void : line, [])
      }
    })

  const context = { operation: "lookup" }

  const askOne = (
    base: HttpInterface,
    path: string
  ): Effect.Effect<ReadonlyArray<Discovered>, BrokerError.BrokerError> =>
    Http.request(context, { driver, settings }, { base, path }).pipe(
      Effect.flatMap((json) => Http.parse(context, base, json, toDiscovered)),
      Effect.tap(() => log(base.url, undefined)),
      Effect.tapError((error) => log(base.url, error)),
      Effect.mapError(away)
    )

  const ask = (path: string): Effect.Effect<Found> =>
    Effect.gen(function* () {
      const [known, failures] = yield* Effect.partition(lookupd, (base) => askOne(base, path), {
        concurrency: "unbounded"
      })
      if (known.length === 0) return { nsqd: undefined, failures }
      const all = new Map(known.flat().map((each) => [hostPort(each), each]))
      yield* logRest(all.size)
      const addresses = yield* Effect.forEach(bounded(all), addressOf)
      return { nsqd: [...new Map(addresses.flat().map((address) => [hostPort(address), address])).values()], failures }
    })

  return {
    topic: (name) => ask(`lookup?${new URLSearchParams({ topic: name }).toString()}`),
    all: ask("nodes")
  }
}
