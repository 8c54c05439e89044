/** Sends under way: in the order in which they were given, so many messages unconfirmed at a time, each within a time. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { BrokerError } from "../../port/BrokerError.ts"
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"

type Answer = Exit.Exit<void, BrokerError>

export interface Sends {
  /** Ends when the broker has confirmed all of them. */
  readonly send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
}

export const make = (env: {
  readonly publish: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
  readonly fork: (effect: Effect.Effect<void, BrokerError>) => Fiber.Fiber<void, BrokerError>
  readonly timers: Timers
  /** Milliseconds. */
  readonly timeout: number
  readonly maxPending: number
  /** No answer in time, and whether the messages had been handed to the broker. */
  readonly late: (isHandedOver: boolean) => BrokerError
}): Sends => {
  const { fork, late, maxPending, publish } = env
  const deadlines = Deadlines.make(env.timers, env.timeout, true)
  /** For these there is no room yet. */
  const waiting = new Set<Send>()
  let pending = 0
  let isProceeding = false

  /** Messages given in one call. An object of a class, since there is one for every message. */
  class Send implements Deadlines.Deadline {
    at = 0
    place = -1
    readonly messages: ReadonlyArray<Outgoing>
    readonly answer: (answer: Answer) => void
    #fiber: Fiber.Fiber<void, BrokerError> | undefined
    #isLate = false

    constructor(messages: ReadonlyArray<Outgoing>, answer: (answer: Answer) => void) {
      this.messages = messages
      this.answer = answer
    }

    /** More than the limit at once go alone. */
    get #size(): number {
      return Math.min(this.messages.length, maxPending)
    }

    fits(): boolean {
      return pending + this.#size <= maxPending
    }

    handOver(): void {
      pending += this.#size
      this.#fiber = fork(publish(this.messages))
      this.#fiber.addObserver((exit) => {
        pending -= this.#size
        this.#end(this.#isLate ? Exit.fail(late(true)) : exit)
        proceed()
      })
    }

    pass(): void {
      if (waiting.delete(this)) return this.#end(Exit.fail(late(false)))
      this.#isLate = true
      this.#fiber?.interruptUnsafe()
    }

    /** Whoever waited for the answer does no more. */
    withdraw(): void {
      deadlines.end(this)
      if (!waiting.delete(this)) this.#fiber?.interruptUnsafe()
    }

    #end(answer: Answer): void {
      deadlines.end(this)
      this.answer(answer)
    }
  }

  /** A broker that answers at once gets here again: the loop below goes on for it. */
  const proceed = (): void => {
    if (isProceeding) return
    isProceeding = true
    for (const send of waiting) {
      if (!send.fits()) break
      waiting.delete(send)
      send.handOver()
    }
    isProceeding = false
  }

  return {
    send: (messages) =>
      Effect.callback((resume) => {
        const send = new Send(messages, resume)
        deadlines.start(send)
        if (waiting.size === 0 && send.fits()) send.handOver()
        else waiting.add(send)
        return Effect.sync(() => send.withdraw())
      })
  }
}
