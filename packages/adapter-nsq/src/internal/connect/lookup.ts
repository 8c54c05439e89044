/** Finding nsqd: every nsqlookupd is asked, and what any of them knows counts. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Settings } from "../../NsqOptions.ts"
import { type Address, hostPort } from "../address.ts"
import * as Http from "../http.ts"

export interface Lookup {
  /** The nsqd that have the topic; `undefined` when no nsqlookupd answers. */
  readonly topic: (name: string) => Effect.Effect<ReadonlyArray<Address> | undefined>
  /** All nsqd. */
  readonly all: Effect.Effect<ReadonlyArray<Address> | undefined>
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** https://nsq.io/components/nsqlookupd.html#get-lookup */
const toAddresses = (json: unknown, usesHttp: boolean): ReadonlyArray<Address> => {
  const producers: unknown = isRecord(json) ? json["producers"] : undefined
  if (!Array.isArray(producers)) return []
  return producers.filter(isRecord).flatMap(({ broadcast_address: host, http_port, tcp_port: port }) => {
    if (typeof host !== "string" || typeof port !== "number") return []
    const isUsable = usesHttp && typeof http_port === "number"
    return [{ host, port, http: isUsable ? `http://${hostPort({ host, port: http_port })}` : undefined }]
  })
}

export const make = ({ http, lookupd, requestTimeout }: Settings): Lookup => {
  /** Those whose failure has been told. */
  const down = new Set<string>()

  const told = (base: string, error: BrokerError.BrokerError | undefined): Effect.Effect<void> => {
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
            told(base, Result.isFailure(answer) ? answer.failure : undefined)
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
