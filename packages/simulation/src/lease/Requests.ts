/** The calls of a process to the server: for up to ten entries, each of which has its own result. */
import { BrokerError, Connection } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Calls } from "../world/Calls.ts"
import type { Machine } from "../world/Machine.ts"
import type { Received } from "./Leases.ts"
import type { Poll, Redrive } from "./Receives.ts"
import type { Counts, Hiding, Refusals, Sending, Server } from "./Server.ts"

/** The error of each entry, in order; `undefined` if the server has done the request. */
export type Results = ReadonlyArray<BrokerError.BrokerError | undefined>

type Asked<A> = Effect.Effect<A, BrokerError.BrokerError>

/** The calls of one process. */
export interface Requests {
  readonly connection: () => Connection.Connection
  readonly declare: (queue: string, redrive: Redrive | undefined) => Asked<void>
  readonly counts: (queue: string) => Asked<Counts>
  readonly receive: (poll: Omit<Poll, "process">) => Asked<ReadonlyArray<Received>>
  readonly send: (queue: string, entries: ReadonlyArray<Sending>) => Effect.Effect<Results>
  readonly remove: (handles: ReadonlyArray<number>, why?: "settled" | "purged") => Effect.Effect<Results>
  readonly hide: (entries: ReadonlyArray<Hiding>) => Effect.Effect<Results>
}

/** Entries of one call. */
export const batch = 10

/** Milliseconds that a call waits for its answer. */
const timeout = 10_000

/** An error of this broker. */
export const errorOf = (operation: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "lease", operation, reason, detail })

/** How a call is made. */
interface How {
  readonly operation: string
  /** Milliseconds that the server may wait with its answer. Default: 0. */
  readonly wait?: number
  /** Whether the driver repeats a call that had no answer. Default: true. */
  readonly repeats?: boolean
}

/** The calls of a process. */
export const make = (machine: Machine, calls: Calls, server: Server): Requests => {
  const { name } = machine
  const tracker = Connection.track("up", machine.wallClock)

  const ask = <A>(
    { operation, repeats = true, wait = 0 }: How,
    act: (answer: (value: A) => void) => void
  ): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.callback((resume) =>
      calls.make<A>({
        machine,
        place: `${name} ${operation}`,
        timeout: wait + timeout,
        repeats,
        act,
        onEnd: (outcome) => {
          if ("value" in outcome) {
            tracker.set("up")
            return resume(Exit.succeed(outcome.value))
          }
          tracker.set(outcome.failure === "Throttled" ? "up" : "down")
          resume(Exit.fail(errorOf(operation, outcome.failure, "the call has failed")))
        }
      })
    )

  const once = <E>(how: How, entries: ReadonlyArray<E>, act: (entries: ReadonlyArray<E>) => Refusals) =>
    Effect.match(
      ask<Refusals>(how, (answer) => answer(act(entries))),
      {
        onFailure: (error): Results => entries.map(() => error),
        onSuccess: (refusals): Results =>
          refusals.map((reason) => reason && errorOf(how.operation, reason, "the server refuses this entry"))
      }
    )

  /** Makes as many calls at a time as the entries need. */
  const each = <E>(how: How, entries: ReadonlyArray<E>, act: (entries: ReadonlyArray<E>) => Refusals) => {
    if (entries.length === 0) return Effect.succeed([])
    if (entries.length <= batch) return once(how, entries, act)
    const parts = Array.from({ length: Math.ceil(entries.length / batch) }, (_, nth) =>
      once(how, entries.slice(nth * batch, (nth + 1) * batch), act)
    )
    return Effect.map(Effect.all(parts, { concurrency: "unbounded" }), (results) => results.flat())
  }

  return {
    connection: tracker.current,
    declare: (queue, redrive) => ask({ operation: "declare" }, (answer) => answer(server.declare(queue, redrive))),
    counts: (queue) => ask({ operation: "counts" }, (answer) => answer(server.counts(queue))),
    receive: (poll) =>
      ask({ operation: `receive ${poll.queue}`, wait: poll.wait }, (answer) =>
        server.receive({ ...poll, process: name }, answer)
      ),
    send: (queue, entries) => each({ operation: `send ${queue}` }, entries, (some) => server.send(name, queue, some)),
    remove: (handles, why = "settled") =>
      each({ operation: "remove" }, handles, (some) => server.remove(name, some, why)),
    // A second call would restart the seconds, and might undo what was requested after the first.
    hide: (entries) => each({ operation: "hide", repeats: false }, entries, (some) => server.hide(name, some))
  }
}
