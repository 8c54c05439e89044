/**
 * Machines: one life of a process. The world provides its clocks, its randomness and its scheduler, and can freeze or kill it
 * between any two of its steps.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Scheduler from "effect/Scheduler"
import * as Draw from "./Draw.ts"
import type { Process } from "../Scenario.ts"
import type { Due, World } from "./World.ts"

/** One life of a process. */
export interface Machine {
  /** The name of this life. */
  readonly name: string
  readonly isAlive: () => boolean
  readonly isFrozen: () => boolean
  /** Milliseconds since the epoch, by its wall clock. */
  readonly wallClock: () => number
  /** Milliseconds since some moment, by its monotonic clock. */
  readonly monotonic: () => number
  /** Does something in this process, unless it is dead by then; a frozen process does it later. */
  readonly perform: (act: () => void) => void
  /** Does so after some milliseconds, by its own clock. */
  readonly after: (delay: number, act: () => void) => Due
  /** Runs an effect in this process. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Nothing of it happens after this. `onKilled` is called. */
  readonly kill: () => void
  readonly onKilled: (callback: () => void) => void
  readonly freeze: (millis: number) => void
  /** `callback` is called with the milliseconds for which it stands still from now on. */
  readonly onFrozen: (callback: (millis: number) => void) => void
}

/** When the world begins, in milliseconds since the epoch. */
export const epoch = Date.UTC(2030, 0, 1)

/** Whether it is one of the world's own, which live as long as that: senders, or operators. */
export const isOfWorld = ({ name }: Pick<Machine, "name">): boolean => name === "sender" || name === "operator"

/** A correct clock. */
export const trueClock: Process["clock"] = { offset: 0, speed: 1, jumps: [] }

const clockOf = (world: World, plan: Process["clock"], after: Machine["after"]): Clock.Clock => {
  const jumped = (): number => {
    let sum = 0
    for (const { at, by } of plan.jumps) if (world.now() >= at) sum += by
    return sum
  }
  const wall = () => Math.floor(epoch + plan.offset + world.now() * plan.speed + jumped())
  const mono = () => BigInt(Math.floor(world.now() * plan.speed * 1e6))
  return {
    currentTimeMillisUnsafe: wall,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanosUnsafe: () => BigInt(wall()) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(wall()) * 1_000_000n),
    monotonicTimeNanosUnsafe: mono,
    monotonicTimeNanos: Effect.sync(mono),
    sleep: (duration) => {
      const millis = Duration.toMillis(duration)
      if (!Number.isFinite(millis)) return Effect.never
      return Effect.callback<void>((resume) => {
        const due = after(millis, () => resume(Effect.void))
        return Effect.sync(() => void (due.run = undefined))
      })
    }
  }
}

/** A scheduler whose tasks the machine performs in their order. */
const schedulerOf = (perform: Machine["perform"], isAlive: () => boolean, world: World): Scheduler.Scheduler => {
  let tasks: Array<() => void> = []
  const flush = (): void => {
    const batch = tasks
    tasks = []
    for (const task of batch) if (isAlive()) task()
  }
  return {
    executionMode: "async",
    shouldYield: () => false,
    makeDispatcher: () => ({
      scheduleTask: (task) => {
        if (tasks.push(task) === 1) world.after(0, () => perform(flush))
      },
      flush
    })
  }
}

/** Begins the line of a program that stops because of its budget. */
const exhausted = "deadLetterBudget:"

/** Counts errors in the log as defects: misbehaving user code is a warning. */
const errorsOf = (world: World, name: string): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, logLevel, message }) => {
    if (logLevel !== "Error" && logLevel !== "Fatal") return
    if (String(message).startsWith(exhausted)) {
      world.record({ _tag: "Draining", process: name, because: "budget" })
      return
    }
    const detail = `${String(message)} ${cause.reasons.length === 0 ? "" : Cause.pretty(cause)}`
    world.record({ _tag: "Defect", process: name, detail })
  })

/**
 * Makes a resource of a process at its first use, for the rest of its life. The first use is now, so clients of processes that
 * never end exist from their beginning; one that fails is made again.
 */
export const once = <A, E>(
  { run }: Pick<Machine, "run">,
  make: Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E> => {
  let made: A | undefined
  const effect = Effect.suspend(() =>
    made === undefined
      ? Effect.tap(Scope.provide(make, Scope.makeUnsafe()), (value) => Effect.sync(() => void (made = value)))
      : Effect.succeed(made)
  )
  run(effect)
  return effect
}

/** Random numbers of a process for adapters that make unique names of them: each life has others. */
export const randomOf = ({ draw }: World, { name }: Pick<Machine, "name">) => {
  const unit = (): number => draw.unit(`${name} random`)
  return { nextDoubleUnsafe: unit, nextIntUnsafe: () => Math.floor(unit() * Number.MAX_SAFE_INTEGER) }
}

/** Begins a life. `seed` names it among the draws. */
export const make = (world: World, name: string, plan: Process["clock"]): Machine => {
  let isAlive = true
  let frozenUntil = 0
  let waiting: Array<() => void> = []
  const onKilled: Array<() => void> = []
  const onFrozen: Array<(millis: number) => void> = []

  const perform = (act: () => void): void => {
    if (!isAlive) return
    if (world.now() < frozenUntil) waiting.push(act)
    else act()
  }
  const after = (delay: number, act: () => void): Due =>
    world.after(Math.max(delay, 0) / plan.speed, () => perform(act))

  const clock = clockOf(world, plan, after)
  const { unit } = Draw.sequence(world.scenario.seed + name.length + name.charCodeAt(0) * 131)
  const random = { nextIntUnsafe: () => Math.floor(unit() * Number.MAX_SAFE_INTEGER), nextDoubleUnsafe: unit }
  const context = Context.empty().pipe(
    Context.add(Clock.Clock, clock),
    Context.add(Random.Random, random),
    Context.add(
      Scheduler.Scheduler,
      schedulerOf(perform, () => isAlive, world)
    ),
    Context.add(References.CurrentLoggers, new Set([errorsOf(world, name)]))
  )
  const fork = Effect.runForkWith(context)

  return {
    name,
    isAlive: () => isAlive,
    isFrozen: () => world.now() < frozenUntil,
    wallClock: () => clock.currentTimeMillisUnsafe(),
    monotonic: () => world.now() * plan.speed,
    perform,
    after,
    run: (effect) => fork(effect),
    kill: () => {
      if (!isAlive) return
      isAlive = false
      for (const callback of onKilled) callback()
    },
    onKilled: (callback) => void onKilled.push(callback),
    onFrozen: (callback) => void onFrozen.push(callback),
    freeze: (millis) => {
      if (!isAlive || world.now() < frozenUntil) return
      frozenUntil = world.now() + millis
      world.record({ _tag: "Frozen", process: name, until: frozenUntil })
      for (const callback of onFrozen) callback(millis)
      world.after(millis, () => {
        const acts = waiting
        waiting = []
        for (const act of acts) world.after(0, () => perform(act))
      })
    }
  }
}
