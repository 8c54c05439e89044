/** A harness whose hooks are watched: which are running, and whether they did what they must. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import { CheckFailed } from "../Check.ts"
import type { FailNext, Service } from "../Harness.ts"
import * as Wait from "../Wait.ts"

/** A harness, and its running hooks. */
export interface Watched {
  readonly harness: Service
  /** The hooks that have begun and not ended, by their names. */
  readonly underWay: () => ReadonlyArray<string>
}

/** Milliseconds until a connection is seen as lost, or as restored, after the broker was restarted. */
const recovery = 120_000

const numbers = ["ready", "inFlight", "delayed"] as const

const failed = (hook: string, problem: string) => Effect.fail(new CheckFailed(`harness.${hook}: ${problem}`))

/** Checks that the connection was lost, if every loss is seen. */
const checkRestart = (broker: Broker.Service, restart: Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    // Two times within one millisecond are equal.
    yield* Effect.sleep(1)
    const { since } = broker.connection()
    yield* restart
    if (!broker.capabilities.connectionBound) return
    const isAnother = Effect.sync(() => broker.connection().since !== since || undefined)
    yield* Wait.found("harness.restart: a connection that is not that of before", isAnother, { within: recovery })
  })

const checkCounts = ({ capabilities }: Broker.Service, counts: Broker.Counts) => {
  const missing = numbers.find((number) => capabilities.counts[number] && counts[number] === undefined)
  return missing === undefined
    ? Effect.succeed(counts)
    : failed("pending", `returns no ${missing}, but capabilities.counts.${missing} is true`)
}

/** Watches the hooks of a harness, for one case on this broker. */
export const make = (harness: Service, broker: Broker.Service): Watched => {
  const open = new Set<readonly [name: string]>()
  const watch = <A, E, R>(name: string, hook: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const entry = [name] as const
      open.add(entry)
      return Effect.ensuring(
        hook,
        Effect.sync(() => open.delete(entry))
      )
    })
  const { cutConnections, deleteQueue, failNext, foreignQueue, restart, transactions } = harness

  /** Checks that a hook opens another broker. */
  const opened = (name: "another" | "crash" | "powerCut") => {
    const hook = harness[name]
    if (hook === undefined) return undefined
    return Effect.flatMap(watch(name, hook), (other) =>
      other === broker ? failed(name, "returns the broker itself") : Effect.succeed(other)
    )
  }

  const fail: FailNext = (operation, failure, queue) => {
    const armed = failNext?.(operation, failure, queue)
    if (armed === undefined) return undefined
    const name = `failNext(${operation}, ${failure})`
    return Effect.flatMap(watch(name, armed), (happened) =>
      happened() ? failed(name, "reports a failed call before there was one") : Effect.succeed(happened)
    )
  }

  return {
    underWay: () => Array.from(open, ([name]) => `harness.${name}`),
    harness: {
      ...harness,
      uniqueQueue: (base) => watch("uniqueQueue", harness.uniqueQueue(base)),
      publishRaw: (queue, body, headers) => watch("publishRaw", harness.publishRaw(queue, body, headers)),
      deadLetters: (queue) => watch("deadLetters", harness.deadLetters(queue)),
      pending: (queue) =>
        Effect.flatMap(watch("pending", harness.pending(queue)), (counts) => checkCounts(broker, counts)),
      cutConnections: cutConnections && watch("cutConnections", cutConnections),
      restart: restart && watch("restart", checkRestart(broker, restart)),
      crash: opened("crash"),
      powerCut: opened("powerCut"),
      another: opened("another"),
      failNext: failNext && fail,
      deleteQueue: deleteQueue && ((queue) => watch("deleteQueue", deleteQueue(queue))),
      foreignQueue: foreignQueue && ((base) => watch("foreignQueue", foreignQueue(base))),
      transactions: transactions && {
        begin: watch("transactions.begin", transactions.begin),
        rows: watch("transactions.rows", transactions.rows)
      }
    }
  }
}
