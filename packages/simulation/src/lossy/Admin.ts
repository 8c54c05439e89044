/** Counts and removes the messages of a queue, on all daemons. */
import type { Client } from "../world/Model.ts"
import type { BrokerError, Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import * as Consumer from "./Consumer.ts"
import * as Link from "./Link.ts"
import type { Settings } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import * as Session from "./Session.ts"

/** Milliseconds that `purge` waits for counted messages. */
const longest = 3000

/** Messages that it takes at a time. */
const credits = 200

/** A request over HTTP. */
const request = <A>(
  machine: Machine,
  operation: string,
  server: Server,
  act: () => A
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.callback((resume) => {
    server.calls.make<A>({
      machine,
      place: `${machine.name} ${operation} ${server.name}`,
      timeout: Link.timeout,
      repeats: false,
      act: (answer) => answer(act()),
      onEnd: (outcome) =>
        resume(
          "value" in outcome
            ? Effect.succeed(outcome.value)
            : Effect.fail(Link.errorOf(operation, outcome.failure, "the daemon did not answer"))
        )
    })
  })

/** `admin` of a client. */
export const make = (machine: Machine, servers: ReadonlyArray<Server>, settings: Settings): Client["admin"] => {
  const everywhere = <A>(operation: string, act: (server: Server) => A) =>
    Effect.forEach(servers, (server) => request(machine, operation, server, () => act(server)), {
      concurrency: "unbounded"
    })

  const counts = (queue: string) =>
    Effect.map(
      everywhere("counts", (server) => server.counts(queue)),
      (all) => {
        const sum = (of: "ready" | "inFlight" | "delayed") => all.reduce((total, each) => total + each[of], 0)
        return { ready: sum("ready"), inFlight: sum("inFlight"), delayed: sum("delayed") }
      }
    )

  /** Receives up to this many messages, fewer if no more arrive, and returns those that `onDelivery` does not settle. */
  const receive = (
    queue: string,
    count: number,
    onDelivery: (delivery: Delivery.Delivery) => void
  ): Effect.Effect<void> =>
    Effect.callback((resume) => {
      let received = 0
      const end = (): void => {
        late.run = undefined
        consumer.close(() => resume(Effect.void))
      }
      const consumer = Consumer.open(machine, servers, settings, {
        queue,
        onDelivery: (delivery) => {
          if (received++ < count) onDelivery(delivery)
          if (received === count) end()
        },
        onReconnect: () => {},
        takeDue: () => undefined,
        onChange: () => {}
      })
      const late = machine.after(longest, end)
      consumer.credit(Math.min(count, credits))
    })

  return {
    counts,
    purge: (queue) =>
      Effect.gen(function* () {
        const { delayed, inFlight, ready } = yield* counts(queue)
        if (inFlight === 0) {
          yield* everywhere("purge", (server) => server.empty(queue))
          return ready + delayed
        }
        // Emptying a queue would take messages away from consumers: so they are received one by one.
        if (ready > 0) yield* receive(queue, ready, (delivery) => Session.finish(Session.receiptOf(delivery)))
        return ready
      })
  }
}
