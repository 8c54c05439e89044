/**
 * Sends under way: they reach the broker in the order in which they were given, with a bound on unconfirmed messages and
 * a timeout for each.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { BrokerError } from "../../port/BrokerError.ts"
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"

type Confirmation = Exit.Exit<void, BrokerError>

export interface Sends {
  /** Succeeds when the broker has confirmed all of the messages. */
  readonly send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
}

export interface Dependencies {
  readonly publish: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
  readonly fork: (effect: Effect.Effect<void, BrokerError>) => Fiber.Fiber<void, BrokerError>
  readonly timers: Timers
  /** Milliseconds. */
  readonly timeout: number
  /** Messages that may be unconfirmed at a time. */
  readonly maxPending: number
  /** The error of a send without a confirmation in time, and whether it had been handed to the broker. */
  readonly late: (isHandedOver: boolean) => BrokerError
}

/** The messages of one call. A class, because there is an object for every message. */
class Send implements Deadlines.Deadline {
  at = 0
  place = -1
  fiber: Fiber.Fiber<void, BrokerError> | undefined = undefined
  isLate = false
  readonly messages: ReadonlyArray<Outgoing>
  /** The part of `maxPending` that it takes. More messages than that are sent alone. */
  readonly size: number
  readonly resume: (confirmation: Confirmation) => void
  readonly #onLate: (send: Send) => void

  constructor(
    messages: ReadonlyArray<Outgoing>,
    maxPending: number,
    resume: (confirmation: Confirmation) => void,
    onLate: (send: Send) => void
  ) {
    this.messages = messages
    this.size = Math.min(messages.length, maxPending)
    this.resume = resume
    this.#onLate = onLate
  }

  pass(): void {
    this.#onLate(this)
  }
}

export const make = ({ fork, late, maxPending, publish, timeout, timers }: Dependencies): Sends => {
  const deadlines = Deadlines.make(timers, timeout, true)
  /** Sends for which there is no room yet. */
  const waiting = new Set<Send>()
  let pending = 0
  let isProceeding = false

  const fits = ({ size }: Send): boolean => pending + size <= maxPending

  const end = (send: Send, confirmation: Confirmation): void => {
    deadlines.end(send)
    send.resume(confirmation)
  }

  const handOver = (send: Send): void => {
    pending += send.size
    // A publish that throws fails this send, and takes up no room.
    send.fiber = fork(Effect.suspend(() => publish(send.messages)))
    send.fiber.addObserver((exit) => {
      pending -= send.size
      end(send, send.isLate ? Exit.fail(late(true)) : exit)
      proceed()
    })
  }

  /** Hands over what fits. A broker that confirms at once gets here again, while the loop goes on. */
  const proceed = (): void => {
    if (isProceeding) return
    isProceeding = true
    for (const send of waiting) {
      if (!fits(send)) break
      waiting.delete(send)
      handOver(send)
    }
    isProceeding = false
  }

  const expire = (send: Send): void => {
    if (waiting.delete(send)) return end(send, Exit.fail(late(false)))
    send.isLate = true
    send.fiber?.interruptUnsafe()
  }

  /** The caller was interrupted. */
  const withdraw = (send: Send): void => {
    deadlines.end(send)
    if (!waiting.delete(send)) send.fiber?.interruptUnsafe()
  }

  return {
    send: (messages) =>
      Effect.callback((resume) => {
        const send = new Send(messages, maxPending, resume, expire)
        deadlines.start(send)
        if (waiting.size === 0 && fits(send)) handOver(send)
        else waiting.add(send)
        return Effect.sync(() => withdraw(send))
      })
  }
}
