/** A user's handler, whose runs and calls are recorded. */
import { Delay, type Handler } from "@requeue/core"
import { OptionKind, OptionNames } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Call } from "../History.ts"
import type { Machine } from "../world/Machine.ts"
import { deliveryOf } from "../world/Parcels.ts"
import { keyHeader } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"

type Body = any // the declared kind of the user's handler

/** The tools that a process gives to its handler. Time in a world is virtual: timers of Node do not count in it. */
export interface Process {
  /**
   * Waits for this many milliseconds of the world; `Infinity` is forever. Rejects with a RangeError unless it is a number >= 0.
   */
  readonly sleep: (millis: number) => Promise<void>
  /** Milliseconds since the epoch, by the process's clock. */
  readonly now: () => number
}

/** A user's handler of single messages. It may return an Effect that needs no services. */
export type Own = (message: Handler.Received<Body>, context: Handler.Context) => unknown

/** The handler of one process, observed. */
export interface Watched {
  readonly handler: Handler.MessageHandler<Body>
  /** Whether a run is open while nothing sleeps: it waits for something outside the world. */
  readonly isStuck: () => boolean
}

const millisOf = (options: Handler.RetryOptions | undefined): number | undefined =>
  options?.delay === undefined ? undefined : Delay.parse("delay", options.delay)

type Called = (name: Call["name"], delay?: number) => void

/** The message, whose calls are recorded. A call that throws does not count. */
const callsOf = (message: Handler.Received<Body>, called: Called): Handler.Received<Body> => ({
  ...message,
  ack: () => {
    // It is settled at once, so it must be recorded before.
    called("ack")
    message.ack()
  },
  retry: (options) => {
    message.retry(options)
    called("retry", millisOf(options))
  },
  fail: (error, options) => {
    message.fail(error, options)
    called("fail", millisOf(options))
  }
})

/** Makes the handler of a process. */
export const watch = (world: World, machine: Machine, make: (process: Process) => Own): Watched => {
  const { isAlive, name: process } = machine
  let open = 0
  let asleep = 0

  const sleep = async (millis: number): Promise<void> => {
    OptionNames.orThrow(OptionNames.argument("sleep", "millis", millis, OptionKind.number(0)))
    asleep++
    await new Promise<void>((resolve) => {
      if (Number.isFinite(millis)) machine.after(millis, resolve)
    })
    asleep--
  }

  /** An Effect's clock, whose sleeps count. */
  /** An Effect's clock, whose sleeps count. */
  const sleeping = Effect.updateService(Clock.Clock, (clock): Clock.Clock => {
    const counted: Clock.Clock["sleep"] = (duration) =>
      Effect.suspend(() => {
        asleep++
        return Effect.ensuring(
          clock.sleep(duration),
          Effect.sync(() => asleep--)
        )
      })
    return Object.create(clock, { sleep: { value: counted } })
  })

  const own = make({ sleep, now: machine.wallClock })
  OptionNames.orThrow(OptionNames.argument("Trial.run", "the result of handler", own, OptionKind.callback))

  const handler: Handler.MessageHandler<Body> = (message, context) => {
    const run = world.number()
    const { attempts, headers } = message
    const key = Number(headers[keyHeader])
    world.record({ _tag: "Began", process, run, given: [{ key, delivery: deliveryOf(message), attempts }] })
    const began = (): void => void open++
    const ended = (how: How): void => {
      open--
      const error = how === "threw" ? "error" : undefined
      if (isAlive()) world.record({ _tag: "Ended", process, run, how, error })
    }
    const called: Called = (call, delay) => {
      if (isAlive()) world.record({ _tag: "Called", process, run, call: { name: call, key, delay } })
    }
    const returned = (): unknown => own(callsOf(message, called), context)
    return observed(returned, { began, ended }, sleeping)
  }

  return { handler, isStuck: () => isAlive() && !machine.isFrozen() && open > 0 && asleep === 0 }
}

type How = "returned" | "threw" | "interrupted"

interface Observer {
  readonly began: () => void
  readonly ended: (how: How) => void
}

type Ran = Effect.Effect<unknown, unknown>

const howOf = (exit: Exit.Exit<unknown, unknown>): How =>
  Exit.isSuccess(exit) ? "returned" : Exit.hasInterrupts(exit) ? "interrupted" : "threw"

/** Runs the handler, and records its start and its end. An Effect begins when its fiber does. */
const observed = (run: () => unknown, { began, ended }: Observer, sleeping: (effect: Ran) => Ran): Handler.Result => {
  let result: unknown
  try {
    result = run()
    if (Effect.isEffect(result)) {
      const effect = sleeping(result as Ran) // a missing service shows when it runs
      return Effect.andThen(
        Effect.sync(began),
        Effect.onExit(effect, (exit) => Effect.sync(() => ended(howOf(exit))))
      )
    }
  } catch (error) {
    began()
    ended("threw")
    throw error
  }
  began()
  return Promise.resolve(result).then(
    () => ended("returned"),
    (error) => {
      ended("threw")
      throw error
    }
  )
}
