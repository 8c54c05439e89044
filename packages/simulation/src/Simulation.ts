/** Runs a scenario: makes the world, runs it, and returns the history. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { History } from "./History.ts"
import * as Operators from "./operators/Operators.ts"
import * as Population from "./operators/Population.ts"
import * as Senders from "./operators/Senders.ts"
import * as Program from "./program/Program.ts"
import { isForever, queue, type Scenario, type Sending } from "./Scenario.ts"
import type { Machine } from "./world/Machine.ts"
import type { Model } from "./world/Model.ts"
import { observed } from "./world/Observed.ts"
import * as World from "./world/World.ts"

/** The maximum number of steps of a run; one that takes more runs in circles. */
const longest = 100_000

/** How long the world may take to come to rest after the last fault, in milliseconds: longer than all delays together. */
const longestRest = 30 * 24 * 3_600_000

/** The program that the processes run, and the bodies of its messages. */
export interface Subject {
  readonly start: Population.Start
  readonly bodyOf: (sending: Sending, scenario: Scenario) => Uint8Array
  /** Called before time advances: a problem ends the run with its error. Default: there is none. */
  readonly problem?: () => Problem | undefined
}

/** An error after which the run proves nothing. */
export interface Problem {
  readonly error: unknown
}

/** The program whose handlers do what the scenario says. */
const scripted: Subject = { start: Program.start, bodyOf: Program.bodyOf }

/** A broker's trouble passes, but a program that cannot work would restart forever. */
const problemOf = (cause: Cause.Cause<{ readonly _tag: string }>): Problem | undefined => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Die" && reason.defect instanceof RangeError) return { error: reason.defect }
    if (reason._tag === "Fail" && reason.error._tag === "ConfigurationError") return { error: reason.error }
  }
  return undefined
}

/**
 * Returns the history of a scenario. The same scenario always has the same history.
 *
 * @throws ConfigurationError or RangeError if the program cannot start, whatever the broker does
 *
 * @example
 * ```ts
 * import { Generate, Simulation } from "@requeue/simulation"
 *
 * const history = await Simulation.run(Generate.scenario(1))
 * history.at(-1)!._tag // => "End"
 * ```
 */
export const run = async (
  scenario: Scenario,
  { bodyOf, problem = () => undefined, start }: Subject = scripted
): Promise<History> => {
  const world = World.make(scenario)
  const model = await modelOf(world)
  const serviceOf = (machine: Machine) =>
    Effect.map(model.client(machine), (client) => observed(world, machine, client))
  let hopeless: Problem | undefined
  const starting: Population.Start = (world, machine, version, runs) =>
    Effect.tapCause(
      Effect.suspend(() => start(world, machine, version, runs, model.begin?.(machine))),
      (cause) => Effect.sync(() => void (hopeless ??= problemOf(cause)))
    )
  const population = Population.populate(world, starting, serviceOf)
  const sends = Senders.send(world, model, serviceOf, (sending) => bodyOf(sending, scenario))
  const operations = Operators.operate(world, model, population, serviceOf)
  const isOver = resting(world, population, () => sends() + operations() + (model.underWay?.() ?? 0))
  let steps = 0
  try {
    for (let goesOn = true; goesOn && steps < longest && !isOver(); steps++) {
      const found = hopeless ?? problem()
      const before = world.now()
      goesOn = world.step(scenario.calmAt + longestRest)
      // Many short-lived activities may run at the same moment.
      if (found !== undefined && !(goesOn && world.now() === before)) throw found.error
      // Codecs and handlers may use promises; these continue before the next thing happens.
      await turn()
    }
  } finally {
    model.close?.()
  }
  world.record({ _tag: "End", because: isOver() ? "rest" : steps < longest ? "time" : "steps" })
  return world.history
}

// Node's own, even if a test replaces it by a fake later.
// oxlint-disable-next-line no-restricted-globals -- Effect's scheduler is the world's here
const soon = setImmediate

/** Tasks of one iteration of the event loop: each iteration asks the operating system for events, which costs more than a step. */
const tasks = 100

const waiting: Array<() => void> = []
let scheduled = 0

const work = (): void => {
  scheduled--
  waiting.shift()?.()
}

/** Waits for the next task, before which all promises continue. The world's time does not pass. */
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    waiting.push(resolve)
    if (scheduled > 0) return
    for (scheduled = 0; scheduled < tasks; scheduled++) soon(work)
  })

const modelOf = async (world: World.World): Promise<Model> => {
  switch (world.scenario.kind) {
    case "sqs": {
      // Programs that do not use the adapter need not have it.
      const { make } = await import("./sqs/index.ts")
      return make(world)
    }
    case "nsq": {
      const { make } = await import("./nsq/index.ts")
      return make(world)
    }
    case "rabbitmq": {
      const { make } = await import("./rabbitmq/index.ts")
      return make(world)
    }
    case "sqlite": {
      const { make } = await import("./sqlite/index.ts")
      return make(world)
    }
  }
}

/** Milliseconds between two checks of a calm world: the first, and the longest. */
const looks = { first: 5000, longest: 200_000 }

/** Once the world is calm, waits for the end of all work, then drains all processes. Returns whether that is done. */
const resting = (world: World.World, population: Population.Population, underWay: () => number): (() => boolean) => {
  const { calmAt, refusals } = world.scenario
  const hopeless = new Set(refusals.filter(isForever).map(({ key }) => key))
  const [stored, open] = [new Set<number>(), new Set<number>()]
  let read = 0
  let isOver = false

  /** Whether every message that can end has ended, and no process is working. */
  const isQuiet = (): boolean => {
    for (; read < world.history.length; read++) {
      const entry = world.history[read]!
      if (entry._tag === "Stored" && entry.queue === queue && !hopeless.has(entry.key)) {
        open.add(entry.copy)
        stored.add(entry.copy)
      } else if (entry._tag === "Gone") open.delete(entry.copy)
      // A power cut may undo its end.
      else if (entry._tag === "Back" && entry.why === "restart" && stored.has(entry.copy)) open.add(entry.copy)
    }
    return open.size === 0 && underWay() === 0
  }

  const sample = (): void => {
    for (const { consumer, machine } of population.running()) {
      // It reports nothing while it stands still.
      if (machine.isFrozen()) continue
      const { backoff, buffered, inProgress, quarantined, state } = consumer.health()
      const because = backoff.map((each) => each.because)
      const { name } = machine
      world.record({
        _tag: "Health",
        process: name,
        state,
        because,
        buffered,
        inProgress,
        quarantined,
        connection: "up"
      })
    }
  }

  const awaitEnd = (): void => {
    if (population.running().length === 0) isOver = true
    else world.after(1000, awaitEnd)
  }

  const look = (pause: number): void => {
    sample()
    if (!isQuiet()) return void world.after(pause, () => look(Math.min(pause * 1.5, looks.longest)))
    population.drainAll()
    awaitEnd()
  }

  world.after(calmAt, () => {
    world.record({ _tag: "Calm" })
    world.after(looks.first, () => look(looks.first))
  })
  return () => isOver
}
