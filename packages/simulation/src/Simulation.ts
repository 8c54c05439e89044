/** Runs a scenario: makes the world, lets everything in it happen, and answers the history. */
import { Broker, Codec, type Consumer, DeadLetters, Producer, QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { History } from "./History.ts"
import * as Handlers from "./program/Handlers.ts"
import * as Program from "./program/Program.ts"
import * as Push from "./push/index.ts"
import { type Operation, type Process, queue, type Scenario } from "./Scenario.ts"
import * as Machine from "./world/Machine.ts"
import type { Model } from "./world/Model.ts"
import { observed } from "./world/Observed.ts"
import * as World from "./world/World.ts"

/** The most steps of a run; one that takes more goes round without an end. */
const longest = 200_000

/** How long the world may take to come to rest once it is calm, in milliseconds: longer than all delays together. */
const patience = 30 * 24 * 3_600_000

/** A process that lives, and its consumer. */
interface Running {
  readonly machine: Machine.Machine
  readonly consumer: Consumer.Consumer
}

/** All that happens in a scenario. The same scenario has the same history, always. */
export const run = async (scenario: Scenario): Promise<History> => {
  const world = World.make(scenario)
  const model = modelOf(world)
  const people = populate(world, model)
  let steps = 0
  while (steps++ < longest && world.step(scenario.calmAt + patience)) {
    if (people.isOver()) break
    // Codecs and handlers may use promises; they go on before the next thing happens.
    await turn()
  }
  world.record({ _tag: "End", because: people.isOver() ? "rest" : "time" })
  return world.history
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

const modelOf = (world: World.World): Model => {
  switch (world.scenario.kind) {
    case "push":
      return Push.make(world)
    default:
      throw new RangeError(`Simulation.run: kind must be push, got ${world.scenario.kind}`)
  }
}

const populate = (world: World.World, model: Model) => {
  const { calmAt, operations, processes, sendings } = world.scenario
  const running = new Map<string, Running>()
  const runs = new Map<number, number>()
  let busy = 0
  /** Nobody comes to life again. */
  let isEnding = false
  let isOver = false

  const serviceOf = (machine: Machine.Machine): Broker.Broker["Service"] =>
    observed(world, machine.name, model.client(machine))

  for (const plan of processes) world.after(plan.startsAt, () => live(plan, 0))
  for (const plan of processes) {
    for (const freeze of plan.freezes) {
      world.after(freeze.at, () => running.get(plan.name)?.machine.freeze(freeze.for))
    }
  }

  const live = (plan: Process, nth: number): void => {
    const machine = Machine.make(world, `${plan.name}${nth + 1}`, plan.clock)
    const versionIndex = plan.versions[Math.min(nth, plan.versions.length - 1)]!
    const version = world.scenario.versions[versionIndex]!
    world.record({ _tag: "Started", process: machine.name, version: versionIndex })
    const life = plan.lives[nth]
    machine.onKilled(() => {
      running.delete(plan.name)
      if (!isEnding) world.after(life?.away ?? 1000, () => live(plan, nth + 1))
    })
    const service = serviceOf(machine)
    const program = Effect.gen(function* () {
      const consumer = yield* Program.start(
        world,
        machine,
        version,
        Handlers.make(world, machine, runs, version.promise)
      )
      running.set(plan.name, { machine, consumer })
      yield* consumer.done
    })
    machine.run(Effect.scoped(Effect.provideService(program, Broker.Broker, service))).addObserver((exit) => {
      if (!machine.isAlive() || Exit.isSuccess(exit)) return
      world.record({ _tag: "Killed", process: machine.name, because: "scenario" })
      machine.kill()
    })
    if (life !== undefined) world.after(life.lasts, () => end(plan.name, machine, life.ends))
  }

  const end = (name: string, machine: Machine.Machine, how: "kill" | "drain"): void => {
    if (!machine.isAlive()) return
    const found = running.get(name)
    if (how === "drain" && found !== undefined) return drain(found)
    world.record({ _tag: "Killed", process: machine.name, because: "scenario" })
    machine.kill()
  }

  const drain = ({ consumer, machine }: Running): void => {
    world.record({ _tag: "Draining", process: machine.name })
    machine.run(consumer.drain()).addObserver((exit) => {
      if (!machine.isAlive()) return
      world.record({
        _tag: "Drained",
        process: machine.name,
        complete: Exit.isSuccess(exit) && exit.value.complete
      })
      world.record({ _tag: "Killed", process: machine.name, because: "drained" })
      machine.kill()
    })
  }

  const trueClock = { offset: 0, speed: 1, jumps: [] }
  const sender = Machine.make(world, "sender", trueClock)
  const senderService = model.client(sender)
  const producer = Producer.make(QueueDefinition.make(queue, { codec: Codec.bytes }))
  for (const { at, body, by, delay, id, key, metadata } of sendings) {
    world.after(at, () => {
      world.record({ _tag: "Sending", key, id, queue, earliest: world.now() + delay })
      const bytes = Program.bodyOf(key, body)
      if (by === "foreign") {
        model.publish(queue, { body: bytes, headers: { id }, metadata, nonce: undefined })
        world.record({ _tag: "Sent", key })
        return
      }
      busy++
      const send = Effect.flatMap(producer, (made) => made.send(bytes, { id, delay }))
      sender.run(Effect.provideService(send, Broker.Broker, senderService)).addObserver((exit) => {
        busy--
        if (Exit.isSuccess(exit)) return world.record({ _tag: "Sent", key })
        const error = Exit.findErrorOption(exit)
        const reason = error._tag === "Some" ? error.value._tag : "died"
        world.record({ _tag: "NotSent", key, reason })
      })
    })
  }

  const operator = Machine.make(world, "operator", trueClock)
  const operatorService = serviceOf(operator)
  operations.forEach(({ at, what }, number) => {
    world.after(at, () => {
      busy++
      world.record({ _tag: "Operates", operation: number, what: what._tag })
      operate(what, (count, failed) => {
        busy--
        world.record({ _tag: "Operated", operation: number, what: what._tag, count, failed })
      })
    })
  })

  const operate = (
    what: Operation["what"],
    done: (count: number | undefined, failed: string | undefined) => void
  ): void => {
    const filter = ({ body }: { readonly body: Uint8Array }) =>
      Number(/\d+/.exec(String.fromCharCode(...body))) % 2 === 1
    const job = (effect: Effect.Effect<number, { readonly _tag: string }, Broker.Broker>) =>
      operator.run(Effect.provideService(effect, Broker.Broker, operatorService)).addObserver((exit) => {
        if (Exit.isSuccess(exit)) return done(exit.value, undefined)
        const error = Exit.findErrorOption(exit)
        done(undefined, error._tag === "Some" ? error.value._tag : "died")
      })
    switch (what._tag) {
      case "Redrive":
        return void job(
          Effect.flatMap(DeadLetters.make(what.queue), ({ redrive }) =>
            Effect.map(
              redrive({
                to: queue,
                ...(what.limit === undefined ? {} : { limit: what.limit }),
                ...(what.odd ? { filter } : {})
              }),
              ({ redriven }) => redriven
            )
          )
        )
      case "Purge":
        return void job(
          Effect.flatMap(DeadLetters.make(what.queue), ({ purge }) => purge(what.odd ? { filter } : { all: true }))
        )
      case "List":
        return void job(
          Effect.flatMap(DeadLetters.make(what.queue), ({ list }) => Effect.map(list(), (found) => found.length))
        )
      case "Pause": {
        const paused = [...running.values()]
        for (const { consumer } of paused) consumer.pause()
        world.after(what.for, () => {
          for (const { consumer, machine } of paused) if (machine.isAlive()) consumer.resume()
          done(undefined, undefined)
        })
        return
      }
      case "Restart":
        model.restart(what.away)
        return void world.after(what.away, () => done(undefined, undefined))
      case "Throttle":
        model.throttle(what.for)
        return void world.after(what.for, () => done(undefined, undefined))
    }
  }

  const sample = (): void => {
    for (const { consumer, machine } of running.values()) {
      const { backoff, buffered, inProgress, quarantined, state } = consumer.health()
      world.record({
        _tag: "Health",
        process: machine.name,
        state,
        because: backoff.map(({ because }) => because),
        buffered,
        inProgress,
        quarantined,
        connection: "up"
      })
    }
  }

  const hopeless = new Set(world.scenario.refusals.filter(({ until }) => until === 5).map(({ key }) => key))

  const open = new Set<number>()
  let read = 0

  /** Whether every message that can end has ended, and nobody is at work. */
  const isQuiet = (): boolean => {
    const { history } = world
    for (; read < history.length; read++) {
      const entry = history[read]!
      if (entry._tag === "Stored" && entry.queue === queue && !hopeless.has(entry.key)) open.add(entry.copy)
      else if (entry._tag === "Gone") open.delete(entry.copy)
    }
    return busy === 0 && open.size === 0
  }

  /** Waits for the end of all work, then drains everything. */
  const watch = (pause: number): void => {
    world.after(pause, () => {
      sample()
      if (!isQuiet()) return watch(Math.min(pause * 1.5, 3_600_000))
      isEnding = true
      for (const each of running.values()) drain(each)
      const settled = (): void => {
        if (running.size > 0) return void world.after(1000, settled)
        isOver = true
      }
      isOver = running.size === 0
      world.after(1000, settled)
    })
  }
  world.after(calmAt, () => {
    world.record({ _tag: "Calm" })
    watch(5000)
  })

  return { isOver: () => isOver }
}
