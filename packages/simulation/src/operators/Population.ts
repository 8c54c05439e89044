/** The processes that run the program: they start, freeze, end as planned, and restart. */
import { Broker, type Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Process, Version } from "../Scenario.ts"
import * as Machine from "../world/Machine.ts"
import type { Begin, Failure } from "../world/Model.ts"
import type { World } from "../world/World.ts"

/** The consumer or the puller of a program. */
type Started = Pick<Consumer.Consumer, "done" | "drain" | "health" | "pause" | "resume">

/**
 * Starts the consumer of a program. `runs` counts the handler runs of each message, in all processes. `begin` begins transactions,
 * if the broker has them.
 */
export type Start = (
  world: World,
  machine: Machine.Machine,
  version: Version,
  runs: Map<number, number>,
  begin?: Begin
) => Effect.Effect<Started, { readonly _tag: string }, Broker.Broker | Scope.Scope>

/** Makes the broker of a process. */
export type ServiceOf = (machine: Machine.Machine) => Effect.Effect<Broker.Service, Failure, Scope.Scope>

/** A process that lives, and its consumer. */
interface Running {
  readonly machine: Machine.Machine
  readonly consumer: Started
}

/** All processes. */
export interface Population {
  /** Those whose consumer runs. */
  readonly running: () => ReadonlyArray<Running>
  /** Drains all of them, and kills those that have not started yet; none restarts. */
  readonly drainAll: () => void
}

/** Runs the scenario's processes. `serviceOf` returns the broker of a process. */
export const populate = (world: World, start: Start, serviceOf: ServiceOf): Population => {
  const { processes, versions } = world.scenario
  const starting = new Set<Machine.Machine>()
  const running = new Map<string, Running>()
  const draining = new Set<Machine.Machine>()
  const runs = new Map<number, number>()
  let isEnding = false

  const live = (plan: Process, nth: number): void => {
    if (isEnding) return
    const machine = Machine.make(world, `${plan.name}${nth + 1}`, plan.clock)
    const version = plan.versions[Math.min(nth, plan.versions.length - 1)]!
    const life = plan.lives[nth]
    world.record({ _tag: "Started", process: machine.name, version })
    machine.onKilled(() => {
      starting.delete(machine)
      running.delete(plan.name)
      world.after(life?.away ?? 1000, () => live(plan, nth + 1))
    })
    starting.add(machine)
    const program = Effect.gen(function* () {
      const consumer = yield* start(world, machine, versions[version]!, runs)
      if (!machine.isAlive()) return
      starting.delete(machine)
      running.set(plan.name, { machine, consumer })
      yield* consumer.done
    })
    const provided = Effect.flatMap(serviceOf(machine), (broker) =>
      Effect.provideService(program, Broker.Broker, broker)
    )
    machine.run(Effect.scoped(provided)).addObserver((exit) => {
      // A supervisor restarts a program that cannot start, or stops itself.
      if (!Exit.isSuccess(exit)) kill(machine)
    })
    if (life !== undefined) world.after(life.lasts, () => end(plan.name, machine, life.ends))
  }

  const kill = (machine: Machine.Machine): void => {
    if (!machine.isAlive()) return
    world.record({ _tag: "Killed", process: machine.name, because: "scenario" })
    machine.kill()
  }

  const end = (name: string, machine: Machine.Machine, how: "kill" | "drain"): void => {
    const found = running.get(name)
    if (how === "drain" && found?.machine === machine) drain(found)
    else kill(machine)
  }

  const drain = ({ consumer, machine }: Running): void => {
    const { name } = machine
    if (draining.has(machine)) return
    draining.add(machine)
    world.record({ _tag: "Draining", process: name })
    machine.run(consumer.drain()).addObserver((exit) => {
      if (!machine.isAlive()) return
      world.record({ _tag: "Drained", process: name, complete: Exit.isSuccess(exit) && exit.value.complete })
      world.record({ _tag: "Killed", process: name, because: "drained" })
      machine.kill()
    })
  }

  for (const plan of processes) {
    world.after(plan.startsAt, () => live(plan, 0))
    for (const freeze of plan.freezes) {
      world.after(freeze.at, () => running.get(plan.name)?.machine.freeze(freeze.for))
    }
  }

  return {
    running: () => [...running.values()],
    drainAll: () => {
      isEnding = true
      for (const machine of starting) kill(machine)
      for (const each of running.values()) drain(each)
    }
  }
}
