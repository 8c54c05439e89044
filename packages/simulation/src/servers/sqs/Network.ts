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
  readonly finish: (outcome: Outcome) => void
  readonly end: (failure: Failure) => void
}

/** The network. */
export interface Network {
  readonly server: Server
  /** Faults of calls, for tests. */
  readonly faults: Faults.Faults
  /** The number of attempts that have reached the server, by action. */
  readonly calls: () => Readonly<Record<string, number>>
  /** The number of requests that will still arrive, even without a waiting client. */
  readonly underWay: () => number
  /** Makes one attempt of a call, which ends after `timeout` milliseconds without an answer. */
  readonly attempt: (call: Api.Call, client: string, timeout: number) => Promise<Outcome>
  /** Breaks the connections of a process; by default of all. */
  readonly cut: (process?: string) => void
  /** Ends the attempts of a client that closes. */
  readonly close: (client: string) => void
  /** Breaks all connections, and refuses new ones for this many milliseconds. */
  readonly restart: (away: number) => void
}

/** How long requests and answers take, and what becomes of them. */
export interface Options {
  /** Milliseconds that a request or an answer takes at least. Default: 5. */
  readonly latency?: number
  /** Milliseconds that it may take longer, by chance. Default: 0. */
  readonly jitter?: number
  /** The fault of a call for which a test has requested none. Default: it has none. */
  readonly fault?: (call: Api.Call) => Faults.Effect | undefined
}

/** Carries the answer to a call, which takes `longer` milliseconds more. */
type Way = (call: Api.Call, run: () => void, longer?: number) => void

/** Makes a function that does what a request that has arrived asks for. `carry` continues it later. */
const serving =
  (server: Server, travel: Way, carry: (delay: number, run: () => void) => void) =>
  (call: Api.Call, { end, finish }: Exchange, effect: Faults.Effect | undefined): void => {
    const breaks = (): void => travel(call, () => end("reset"))
    const handle = (longer = 0): void => {
      const answer = (reply: Api.Reply): void => {
        if (effect?._tag === "brokenAnswer") breaks()
        else if (effect?._tag !== "lostAnswer") travel(call, () => finish(reply), longer)
      }
      server.handle(call, answer, effect)
    }
    switch (effect?._tag) {
      case "lostRequest":
        return
      case "brokenRequest":
        return breaks()
      case "late":
        breaks()
        return carry(effect.millis, () => handle())
      case "slow":
        return carry(effect.millis, () => handle(effect.answer))
      default:
        handle()
    }
  }

/** Connects a server. */
export const make = (
  host: Host,
  server: Server,
  { fault = () => undefined, jitter = 0, latency = 5 }: Options = {}
): Network => {
  const faults = Faults.make()
  const exchanges = new Set<Exchange>()
  const calls: Record<string, number> = {}
  let downUntil = Number.NEGATIVE_INFINITY
  let underWay = 0

  const way = ({ action, client }: Api.Call): number => latency + jitter * host.random(`${client} ${action}`)
  const travel: Way = (call, run, longer = 0) => void host.after(way(call) + longer, run)
  const carry = (delay: number, run: () => void): void => {
    underWay++
    host.after(delay, () => {
      underWay--
      run()
    })
  }

  const serve = serving(server, travel, carry)

  const endAll = (failure: Failure, isMeant: (exchange: Exchange) => boolean = () => true): void => {
    for (const exchange of exchanges) if (isMeant(exchange)) exchange.end(failure)
  }

  return {
    server,
    faults,
    calls: () => ({ ...calls }),
    underWay: () => underWay,
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
        const end = (failure: Failure): void => finish(Result.fail(failure))
        const exchange: Exchange = { process: call.client, client, finish, end }
        exchanges.add(exchange)
        const cancel = host.after(timeout, () => end("silence"))
        carry(way(call), () => {
          // A request whose connection has broken on its way does not arrive.
          if (!exchanges.has(exchange)) return
          if (host.now() < downUntil) end("refused")
          else {
            calls[call.action] = (calls[call.action] ?? 0) + 1
            serve(call, exchange, faults.take(call) ?? fault(call))
          }
        })
      })
  }
}
