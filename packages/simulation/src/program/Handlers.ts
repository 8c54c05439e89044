/** Handlers that do what the scenario says for each message and run, and record it. */
import type { Handler } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Call, Given } from "../History.ts"
import type { Behaviour, Call as Planned, Sending } from "../Scenario.ts"
import type { Machine } from "../world/Machine.ts"
import { deliveryOf, handledKeyOf } from "../world/Parcels.ts"
import type { World } from "../world/World.ts"
import * as Throwing from "./Thrown.ts"
import type { Transact } from "./Transactions.ts"

type Received = Handler.Received<unknown>

/** One message, and what a handler does with it. */
interface Turn {
  readonly message: Received
  readonly key: number
  readonly behaviour: Behaviour
}

/** The handlers of one process. */
export interface Handlers {
  readonly single: Handler.MessageHandler<unknown>
  readonly batch: Handler.BatchHandler<unknown>
}

const atOnce: Behaviour = { takes: 0 }

/** Thrown at the end of a run that returns its pulled batch. */
export const released = Symbol("released")

/** The end of a run: a thrown value, the end of its process, or nothing. */
type Finished = { readonly thrown: unknown } | "killed" | undefined

type Finish = () => Finished | Promise<Finished>

/** Does it as an async function. */
const promised = (machine: Machine, takes: number, finish: Finish): Promise<void> => {
  const conclude = (finished: Finished): void | Promise<never> => {
    if (finished === "killed") return new Promise(() => {})
    if (finished !== undefined) throw finished.thrown
  }
  const end = (): void | Promise<void> => {
    const finished = finish()
    return finished instanceof Promise ? finished.then(conclude) : conclude(finished)
  }
  if (takes === 0) return Promise.resolve().then(end)
  return new Promise((resolve, reject) => {
    if (!Number.isFinite(takes)) return
    machine.after(takes, () => void Promise.resolve().then(end).then(resolve, reject))
  })
}

/** Does it as an Effect. */
const effected = (takes: number, finish: Finish): Effect.Effect<void, unknown> => {
  const conclude = (finished: Finished): Effect.Effect<void, unknown> => {
    if (finished === "killed") return Effect.never
    return finished === undefined ? Effect.void : Effect.fail(finished.thrown)
  }
  const end = Effect.suspend(() => {
    const finished = finish()
    return finished instanceof Promise
      ? Effect.flatMap(
          Effect.promise(() => finished),
          conclude
        )
      : conclude(finished)
  })
  return takes === 0 ? end : Effect.andThen(Effect.sleep(takes), end)
}

type Calling = (run: number, turn: Turn, batch: Handler.Batch<unknown> | undefined, planned: Planned) => void

/** Makes a handler's call, and records it. */
const calling =
  (world: World, { isAlive, name: process }: Machine): Calling =>
  (run, turn, batch, planned) => {
    if (!isAlive()) return
    const all = planned.on === "all" && batch !== undefined && planned.name !== "fail"
    const options = planned.delay === undefined ? undefined : { delay: planned.delay }
    const name = `${planned.name}${all ? "All" : ""}` as Call["name"] // one of its names, because `all` is false for `fail`
    const key = all ? undefined : turn.key
    const error = planned.error === undefined ? {} : { error: planned.error }
    world.record({ _tag: "Called", process, run, call: { name, key, delay: planned.delay, ...error } })
    if (planned.name === "ack") return all ? batch.ackAll() : turn.message.ack()
    if (planned.name === "retry") return all ? batch.retryAll(options) : turn.message.retry(options)
    turn.message.fail(Throwing.make(planned.error ?? "error"), options)
  }

/** Before a run ends, its transaction runs, if it has one. */
const enlisting = (
  transact: Transact | undefined,
  run: number,
  turns: ReadonlyArray<Turn>,
  batch: Handler.Batch<unknown> | undefined,
  { end, failed }: { readonly end: () => Finished; readonly failed: (thrown: unknown) => Finished }
): Finish => {
  const enlisted = turns.filter(({ behaviour: { within } }) => within !== undefined)
  const within = enlisted[0]?.behaviour.within
  if (transact === undefined || within === undefined) return end
  // A batch leaves out messages with a retry.
  const isWhole = enlisted.length === turns.length && turns.every(({ behaviour: { first } }) => first === undefined)
  const messages = enlisted.map(({ message }) => message)
  return () => {
    try {
      const done = transact(run, within, { messages, batch: isWhole ? batch : undefined })
      return done === undefined ? end() : done.then(end, failed)
    } catch (error) {
      return failed(error)
    }
  }
}

/** Writes into what a handler received. */
const meddle = ({ body, headers }: Received): void => {
  try {
    Object.assign(body as object, { key: 999_999 }) // the scenario's bodies are objects
    Object.assign(headers, { meddled: "yes" })
  } catch {
    // Frozen values cannot be changed.
  }
}

// Long, because the functions of a run share its turns.
/** The handlers of a process. `runs` counts the handler runs of each message, in all processes. */
export const make = (
  world: World,
  machine: Machine,
  runs: Map<number, number>,
  isPromise = false,
  transact?: Transact
): Handlers => {
  const { name } = machine
  const sendings = new Map<number, Sending>(world.scenario.sendings.map((each) => [each.key, each]))

  const turnOf = (message: Received): Turn => {
    const key = handledKeyOf(message)
    const nth = runs.get(key) ?? 0
    runs.set(key, nth + 1)
    return { message, key, behaviour: (world.isCalm() ? undefined : sendings.get(key)?.runs[nth]) ?? atOnce }
  }

  const call = calling(world, machine)

  const run = (messages: ReadonlyArray<Received>, batch: Handler.Batch<unknown> | undefined) => {
    if (!machine.isAlive()) return Effect.never
    const number = world.number()
    const turns = messages.map(turnOf)
    const given = turns.map(
      ({ key, message }): Given => ({ key, delivery: deliveryOf(message), attempts: message.attempts })
    )
    world.record({ _tag: "Began", process: name, run: number, given })
    for (const turn of turns) {
      if (turn.behaviour.meddles === true) meddle(turn.message)
      for (const each of turn.behaviour.first ?? []) call(number, turn, batch, each)
    }
    const longest = Math.max(...turns.map(({ behaviour: { takes } }) => (takes === "forever" ? Infinity : takes)))
    const isStubborn = turns.some(({ behaviour: { stubborn } }) => stubborn === true)
    let isOver = false
    const ended = (how: "returned" | "threw" | "interrupted" | "released", error?: string): void => {
      isOver = true
      if (machine.isAlive()) world.record({ _tag: "Ended", process: name, run: number, how, error })
    }

    /** Ends the run. A process that it kills stops there. */
    const end = (): Finished => {
      if (!machine.isAlive() || isOver) return "killed"
      for (const turn of turns) for (const each of turn.behaviour.last ?? []) call(number, turn, batch, each)
      for (const turn of turns) {
        for (const each of turn.behaviour.late ?? []) machine.after(1000, () => call(number, turn, batch, each))
      }
      if (turns.some(({ behaviour: { kills } }) => kills === true)) {
        world.record({ _tag: "Killed", process: name, because: "handler" })
        machine.kill()
        return "killed"
      }
      if (turns.some(({ behaviour: { releases } }) => releases === true)) {
        ended("released")
        return { thrown: released }
      }
      const thrown = turns.find(({ behaviour: { throws } }) => throws !== undefined)?.behaviour.throws
      ended(thrown === undefined ? "returned" : "threw", thrown)
      return thrown === undefined ? undefined : { thrown: Throwing.make(thrown) }
    }

    const failed = (thrown: unknown): Finished => {
      if (!machine.isAlive() || isOver) return "killed"
      ended("threw", "error")
      return { thrown }
    }

    const finish = enlisting(transact, number, turns, batch, { end, failed })
    if (isPromise) return promised(machine, longest, finish)
    const body = effected(longest, finish)
    // A handler that never ends must be interruptible: for any other, nothing is promised.
    if (isStubborn && Number.isFinite(longest)) return Effect.uninterruptible(body)
    return Effect.onInterrupt(body, () => Effect.sync(() => ended("interrupted")))
  }

  return {
    single: (message) => run([message], undefined),
    batch: (batch) => run(batch.messages, batch)
  }
}
