/** Operators: they redrive, purge and list dead letters, pause consumers, and maintain the broker. */
import { Broker } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Fact } from "../History.ts"
import { nameOf, type Operation, queue, type Scenario } from "../Scenario.ts"
import * as Machine from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import { keyOf, type Parcel } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import type { Population, ServiceOf } from "./Population.ts"

type What = Operation["what"]

const isOdd = (letter: Pick<Parcel, "body" | "headers">): boolean => keyOf(letter) % 2 === 1

/** The operations that work on dead letters; `undefined` for all others. Each returns a number of letters. */
const jobOf = (what: What, scenario: Scenario) => {
  switch (what._tag) {
    case "Redrive": {
      const { limit, odd } = what
      const options = {
        to: nameOf(scenario, queue),
        create: true,
        ...(limit === undefined ? {} : { limit }),
        ...(odd ? { filter: isOdd } : {})
      }
      return Effect.flatMap(DeadLetters.make(nameOf(scenario, what.queue)), ({ redrive }) =>
        Effect.map(redrive(options), ({ redriven }) => redriven)
      )
    }
    case "Purge":
      return Effect.flatMap(DeadLetters.make(nameOf(scenario, what.queue)), ({ purge }) =>
        purge(what.odd ? { filter: isOdd } : { all: true })
      )
    case "List":
      return Effect.flatMap(DeadLetters.make(nameOf(scenario, what.queue)), ({ list }) =>
        Effect.map(list(), (found) => found.length)
      )
    default:
      return undefined
  }
}

/** Runs the scenario's operations; the result counts the running ones. */
export const operate = (world: World, model: Model, population: Population, serviceOf: ServiceOf): (() => number) => {
  const { operations } = world.scenario
  if (operations.length === 0) return () => 0
  const machine = Machine.make(world, "operator", Machine.trueClock)
  const service = Machine.once(machine, serviceOf(machine))
  let underWay = 0

  /** Acts on the world, and returns how long the operation takes. */
  const act = (what: What): number => {
    switch (what._tag) {
      case "Pause": {
        const paused = population.running()
        for (const { consumer } of paused) consumer.pause()
        world.after(what.for, () => {
          for (const each of paused) if (each.machine.isAlive()) each.consumer.resume()
        })
        return what.for
      }
      case "Restart":
        model.restart(what.away)
        return what.away
      case "Throttle":
        model.throttle(what.for)
        return what.for
      default:
        return 0
    }
  }

  const begin = (what: What, operation: number): void => {
    underWay++
    world.record({ _tag: "Operates", operation, what: what._tag })
    const end = (ended: Pick<Extract<Fact, { _tag: "Operated" }>, "count" | "failed" | "reason">): void => {
      underWay--
      world.record({ _tag: "Operated", operation, what: what._tag, ...ended })
    }
    const job = jobOf(what, world.scenario)
    if (job === undefined) return void world.after(act(what), () => end({ count: undefined, failed: undefined }))
    const done = Effect.flatMap(service, (broker) => Effect.provideService(job, Broker.Broker, broker))
    machine.run(done).addObserver((exit) => {
      if (Exit.isSuccess(exit)) return end({ count: exit.value, failed: undefined })
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      const reason = error !== undefined && "reason" in error ? { reason: error.reason } : {}
      end({ count: undefined, failed: error?._tag ?? "died", ...reason })
    })
  }

  operations.forEach(({ at, what }, operation) => world.after(at, () => begin(what, operation)))
  return () => underWay
}
