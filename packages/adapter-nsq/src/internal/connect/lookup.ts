/** Finding nsqd: every nsqlookupd is asked, and an nsqd that any of them knows is found. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Settings } from "../../NsqOptions.ts"
import { type Address, hostPort } from "../address.ts"
import * as Http from "../http.ts"

export interface Lookup {
  /** The nsqd that have a topic; `undefined` when no nsqlookupd answers. */
  readonly topic: (name: string) => Effect.Effect<ReadonlyArray<Address> | undefined>
  /** All nsqd; `undefined` when no nsqlookupd answers. */
  readonly all: Effect.Effect<ReadonlyArray<Address> | undefined>
}

/** https://nsq.io/components/nsqlookupd.html#get-lookup */
const toAddresses = (json: unknown, usesHttp: boolean): ReadonlyArray<Address> => {
  const producers: unknown = Predicate.isReadonlyObject(json) ? json["producers"] : undefined
  if (!Array.isArray(producers)) return []
  return producers
    .filter(Predicate.isReadonlyObject)
    .flatMap(({ broadcast_address: host, http_port, tcp_port: port }) => {
      if (typeof host !== "string" || typeof port !== "number") return []
      const isUsable = usesHttp && typeof http_port === "number"
      return [{ host, port, http: isUsable ? `http://${hostPort({ host, port: http_port })}` : undefined }]
    })
}

/** Asks the nsqlookupd of the options. Each outage of one of them is logged once. */
export const make = ({ http, lookupd, requestTimeout }: Settings): Lookup => {
  /** The nsqlookupd that did not answer when they were asked last. */
  const down = new Set<string>()

  const log = (base: string, error: BrokerError.BrokerError | undefined): Effect.Effect<void> => {
    if (error === undefined) {
      return down.delete(base) ? Effect.annotateLogs(Effect.logInfo("nsqlookupd answers again"), { base }) : Effect.void
    }
    if (down.has(base)) return Effect.void
    down.add(base)
    return Effect.annotateLogs(Effect.logWarning("nsqlookupd does not answer"), { base, error: error.message })
  }

  const ask = (path: string): Effect.Effect<ReadonlyArray<Address> | undefined> =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach(
        lookupd,
        (base) =>
          Effect.tap(Effect.result(Http.request({ operation: "lookup" }, requestTimeout, { base, path })), (answer) =>
            log(base, Result.isFailure(answer) ? answer.failure : undefined)
          ),
        { concurrency: "unbounded" }
      )
      const known = answers.filter(Result.isSuccess)
      if (known.length === 0) return undefined
      const found = known.flatMap(({ success }) => (success === Http.missing ? [] : toAddresses(success, http)))
      return [...new Map(found.map((address) => [hostPort(address), address])).values()]
    })

  return {
    topic: (name) => ask(`lookup?${new URLSearchParams({ topic: name }).toString()}`),
    all: ask("nodes")
  }
}
