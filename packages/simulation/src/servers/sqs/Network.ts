/**
 * The way between clients and a simulated SQS: each attempt of a call is a request and an answer, which take their time and
 * can be lost.
 *
 * | rule | source |
 * | --- | --- |
 * | a call whose connection breaks may have been done, and SQS continues it: a long poll still receives | https://github.com/aws/aws-sdk-js/issues/2350 |
 * | each call has an HTTP exchange: calls that are under way together may be done in any order, if they take different times | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests.html |
 */
import * as Result from "effect/Result"
import type { Host } from "../Host.ts"
import type * as Api from "./Api.ts"
import type { AwsError } from "./AwsError.ts"
import * as Faults from "./Faults.ts"
import type { Server } from "./Server.ts"

/** The failure of an attempt: an error of SQS, or no answer. */
export type Failure = AwsError | "reset" | "refused" | "silence" | "closed"

/** The result of one attempt. */
type Outcome = Result.Result<object, Failure>

/** An attempt under way. */
interface Exchange {
  readonly process: string | undefined
  readonly client: string
  readonly end: (failure: Failure) => void
}

/** The network. */
export interface Network {
  readonly server: Server
  /** Faults of calls, for tests. */
  readonly faults: Faults.Faults
  /** The number of attempts that have reached the server, by action. */
  readonly calls: () => Readonly<Record<string, number>>
  /** Makes one attempt of a call, which ends after `timeout` milliseconds without an answer. */
  readonly attempt: (call: Api.Call, client: string, timeout: number) => Promise<Outcome>
  /** Breaks the connections of a process; by default of all. */
  readonly cut: (process?: string) => void
  /** Ends the attempts of a client that closes. */
  readonly close: (client: string) => void
  /** Breaks all connections, and refuses new ones for this many milliseconds. */
  readonly restart: (away: number) => void
}

/** How long requests and answers take. */
export interface Options {
  /** Milliseconds that a request or an answer takes at least. Default: 5. */
  readonly latency?: number
  /** Milliseconds that it may take longer, by chance. Default: 0. */
  readonly jitter?: number
}

/** Connects a server. */
export const make = (host: Host, server: Server, { jitter = 0, latency = 5 }: Options = {}): Network => {
  const faults = Faults.make()
  const exchanges = new Set<Exchange>()
  const calls: Record<string, number> = {}
  let downUntil = Number.NEGATIVE_INFINITY

  const travel = (run: () => void): void => void host.after(latency + jitter * host.random(), run)

  const endAll = (failure: Failure, isMeant: (exchange: Exchange) => boolean = () => true): void => {
    for (const exchange of exchanges) if (isMeant(exchange)) exchange.end(failure)
  }

  return {
    server,
    faults,
    calls: () => ({ ...calls }),
    cut: (process) => endAll("reset", (exchange) => process === undefined || exchange.process === process),
    close: (client) => endAll("closed", (exchange) => exchange.client === client),
    restart: (away) => {
      downUntil = host.now() + away
      endAll("reset")
    },
    attempt: (call, client, timeout) =>
      new Promise((resolve) => {
        const finish = (outcome: Outcome): void => {
          if (!exchanges.delete(exchange)) return
          cancel()
          resolve(outcome)
        }
        const exchange: Exchange = { process: call.client, client, end: (failure) => finish(Result.fail(failure)) }
        exchanges.add(exchange)
        const cancel = host.after(timeout, () => exchange.end("silence"))
        travel(() => {
          // A request whose connection has broken on its way does not arrive.
          if (!exchanges.has(exchange)) return
          if (host.now() < downUntil) return exchange.end("refused")
          calls[call.action] = (calls[call.action] ?? 0) + 1
          const effect = faults.take(call)
          if (effect?._tag === "lostRequest") return
          const answer = (reply: Api.Reply): void => {
            if (effect?._tag === "brokenAnswer") travel(() => exchange.end("reset"))
            else if (effect?._tag !== "lostAnswer") travel(() => finish(reply))
          }
          const handle = () => server.handle(call, answer, effect)
          if (effect?._tag === "slow") host.after(effect.millis, handle)
          else handle()
        })
      })
  }
}
