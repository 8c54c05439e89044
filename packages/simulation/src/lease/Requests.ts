/** What a process asks of the server: calls with entries, each of which has its own result. */
import { BrokerError, Connection } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Calls } from "../world/Calls.ts"
import type { Machine } from "../world/Machine.ts"
import type { Counts, Hiding, Poll, Received, Redrive, Results, Sending, Server } from "./Server.ts"

/** What follows when a call has ended. */
export type Then<A> = (result: Exit.Exit<A, BrokerError.BrokerError>) => void

/** An entry of a batch, and what follows when it has its result: `undefined` when the server has done it. */
export interface Entry<A> {
  readonly asked: A
  readonly then: (error: BrokerError.BrokerError | undefined) => void
}

/** The calls of one process. */
export interface Requests {
  readonly connection: () => Connection.Connection
  readonly declare: (queue: string, redrive: Redrive | undefined) => Effect.Effect<void, BrokerError.BrokerError>
  readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError.BrokerError>
  readonly receive: (poll: Omit<Poll, "process">, then: Then<ReadonlyArray<Received>>) => void
  readonly send: (queue: string, entries: ReadonlyArray<Entry<Sending>>) => void
  readonly remove: (entries: ReadonlyArray<Entry<number>>, why?: "settled" | "purged") => void
  readonly hide: (entries: ReadonlyArray<Entry<Hiding>>) => void
}

/** Entries of one call. */
export const batch = 10

/** Milliseconds that a call waits for its answer. */
const patience = 10_000

/** An error of this broker. */
export const errorOf = (operation: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "lease", operation, reason, detail })

/** How a call is made, where it is not as most are. */
interface How {
  readonly operation: string
  /** Milliseconds that the server may wait with its answer. */
  readonly wait?: number
  /** Whether a call without an answer is made again. */
  readonly repeats?: boolean
}

/** The calls of a process. */
export const make = (machine: Machine, calls: Calls, server: Server): Requests => {
  const { name } = machine
  const tracker = Connection.track("up", machine.wallClock)

  const ask = <A>(
    { operation, repeats = true, wait = 0 }: How,
    act: (answer: (value: A) => void) => void,
    then: Then<A>
  ): void =>
    calls.make<A>({
      machine,
      place: `${name} ${operation}`,
      patience: wait + patience,
      repeats,
      act,
      then: (outcome) => {
        const isReached = "value" in outcome || outcome.failure === "Throttled"
        tracker.set(isReached ? "up" : "down")
        then(
          "value" in outcome
            ? Exit.succeed(outcome.value)
            : Exit.fail(errorOf(operation, outcome.failure, "the call has failed"))
        )
      }
    })

  const effect = <A>(operation: string, act: () => A): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.callback((resume) => ask<A>({ operation }, (answer) => answer(act()), resume))

  /** Makes as many calls as the entries need. */
  const batches = <E>(how: How, entries: ReadonlyArray<Entry<E>>, act: (asked: ReadonlyArray<E>) => Results): void => {
    for (let from = 0; from < entries.length; from += batch) {
      const some = entries.slice(from, from + batch)
      const asked = some.map((entry) => entry.asked)
      ask<Results>(
        how,
        (answer) => answer(act(asked)),
        (result) => {
          for (const [index, { then }] of some.entries()) {
            if (Exit.isFailure(result)) {
              const error = Exit.findErrorOption(result)
              then(error._tag === "Some" ? error.value : errorOf(how.operation, "Unsupported", "the call died"))
              continue
            }
            const reason = result.value[index] as BrokerError.Reason | undefined // The server answers reasons of errors.
            then(reason === undefined ? undefined : errorOf(how.operation, reason, "the server refuses this entry"))
          }
        }
      )
    }
  }

  return {
    connection: tracker.current,
    declare: (queue, redrive) => effect("declare", () => server.declare(queue, redrive)),
    counts: (queue) => effect("counts", () => server.counts(queue)),
    receive: (poll, then) =>
      ask(
        { operation: `receive ${poll.queue}`, wait: poll.wait },
        (answer) => server.receive({ ...poll, process: name }, answer),
        then
      ),
    send: (queue, entries) =>
      batches({ operation: `send ${queue}` }, entries, (asked) => server.send(name, queue, asked)),
    remove: (entries, why = "settled") =>
      batches({ operation: "remove" }, entries, (asked) => server.remove(name, asked, why)),
    // A second time would count the seconds anew, and might take back what was asked after the first.
    hide: (entries) => batches({ operation: "hide", repeats: false }, entries, (asked) => server.hide(name, asked))
  }
}
