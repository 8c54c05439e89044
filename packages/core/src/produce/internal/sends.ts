/**
 * Sends under way: they reach the broker in the order in which they were given, each with a timeout, and with one bound on
 * unconfirmed messages for all who send on a connection.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Bag from "../../runtime/Bag.ts"
import * as Direct from "../../runtime/Direct.ts"
import { type BrokerError, isDoubtful, ofBatch } from "../../port/BrokerError.ts"
import type { Service } from "../../port/Broker.ts"
import type * as Deadlines from "../../runtime/Deadlines.ts"
import type { Outgoing } from "../../message/Outgoing.ts"

type Confirmation = Exit.Exit<void, BrokerError>

/** Why a send was given up before the broker's answer. */
export type Cut = "late" | "closed"

/** The sends of one who sends. */
export interface Sends {
  /** Succeeds when the broker has confirmed all of the messages. */
  readonly send: (messages: ReadonlyArray<Outgoing>) => Direct.Direct<void, BrokerError>
  /** Succeeds when no send is under way. */
  readonly ended: Effect.Effect<void>
  /** Fails all sends that are under way. */
  readonly close: () => void
}

export interface Dependencies {
  readonly broker: Service
  readonly fork: (effect: Effect.Effect<void, BrokerError>) => Fiber.Fiber<void, BrokerError>
  readonly deadlines: Deadlines.Deadlines
  /** Messages that may be unconfirmed at a time, those of others on the connection included. */
  readonly maxPending: number
  /** The error of a send that was given up. `isHandedOver`: the broker may have it. */
  readonly cutShort: (messages: ReadonlyArray<Outgoing>, cut: Cut, isHandedOver: boolean) => BrokerError
}

/** The part of {@link make} that knows what to do with a send. */
interface Owner {
  readonly maxPending: number
  readonly handOver: (send: Send) => void
  readonly cutShort: (send: Send, cut: Cut) => void
}

/** The place of a send among those under way. It has another one among the deadlines. */
interface UnderWay extends Bag.Member {
  readonly send: Send
}

/** The messages of one call. A class, because there is an object for every message. */
class Send implements Deadlines.Deadline {
  at = 0
  place = -1
  readonly underWay: UnderWay = { place: -1, send: this }
  /** False as long as it waits for room. */
  isHandedOver = false
  /** Interrupts the broker's publish. */
  interrupt: (() => void) | undefined = undefined
  /** Set when it is given up. */
  cut: Cut | undefined = undefined
  readonly owner: Owner
  readonly messages: ReadonlyArray<Outgoing>
  /** The part of `maxPending` that it takes. More messages than that are sent alone. */
  readonly size: number
  readonly resume: (confirmation: Confirmation) => void

  constructor(owner: Owner, messages: ReadonlyArray<Outgoing>, resume: (confirmation: Confirmation) => void) {
    this.owner = owner
    this.messages = messages
    this.size = Math.min(messages.length, owner.maxPending)
    this.resume = resume
  }

  pass(): void {
    this.owner.cutShort(this, "late")
  }
}

/** The unconfirmed messages of a connection. */
class Room {
  pending = 0
  /** Sends for which there is no room yet. */
  readonly waiting = new Set<Send>()
  #isProceeding = false

  /** Hands the send over, now or when there is room. */
  enter(send: Send): void {
    if (this.waiting.size === 0 && this.#fits(send)) send.owner.handOver(send)
    else this.waiting.add(send)
  }

  /** Hands over what fits. A broker that confirms at once gets here again, while the loop goes on. */
  readonly proceed = (): void => {
    if (this.#isProceeding) return
    this.#isProceeding = true
    for (const send of this.waiting) {
      if (!this.#fits(send)) break
      this.waiting.delete(send)
      send.owner.handOver(send)
    }
    this.#isProceeding = false
  }

  #fits({ owner, size }: Send): boolean {
    return this.pending + size <= owner.maxPending
  }
}

const rooms = new WeakMap<Service, Room>()

const roomOf = (broker: Service): Room => {
  const known = rooms.get(broker)
  if (known !== undefined) return known
  const room = new Room()
  rooms.set(broker, room)
  return room
}

export const make = ({ broker, cutShort: errorOf, deadlines, fork, maxPending }: Dependencies): Sends => {
  const room = roomOf(broker)
  const publish = publishing(broker)
  const underWay = Bag.make<UnderWay>()
  const onEnded = new Set<() => void>()

  /** Answers whether it was under way. */
  const leave = (send: Send): boolean => {
    if (send.underWay.place === -1) return false
    underWay.delete(send.underWay)
    room.waiting.delete(send)
    deadlines.end(send)
    if (underWay.size() === 0) for (const resume of onEnded) resume()
    return true
  }

  const end = (send: Send, confirmation: Confirmation): void => {
    if (leave(send)) send.resume(confirmation)
  }

  const cutShort = (send: Send, cut: Cut): void => {
    send.cut = cut
    // Before the error that is told of those who tell nothing: an adapter may know what it has not written.
    send.interrupt?.()
    end(send, Exit.fail(errorOf(send.messages, cut, send.isHandedOver)))
  }

  const leaveRoom = (send: Send, exit: Confirmation): void => {
    room.pending -= send.size
    // Unless it was given up here, the adapter closes.
    const isCut = Exit.isFailure(exit) && (send.cut !== undefined || Cause.hasInterruptsOnly(exit.cause))
    if (!isCut) {
      end(send, exit)
      return room.proceed()
    }
    end(send, Exit.fail(whatIsKnown(exit.cause, errorOf(send.messages, send.cut ?? "closed", true))))
    // Those that are given up at the same time leave first: its room is not for them.
    queueMicrotask(room.proceed)
  }

  const handOver = (send: Send): void => {
    room.pending += send.size
    send.isHandedOver = true
    send.interrupt = Direct.run(publish(send.messages), fork, (exit) => leaveRoom(send, exit))
  }

  const owner: Owner = { maxPending, handOver, cutShort }

  return {
    send: (messages) =>
      Direct.make((onExit) => {
        const send = new Send(owner, messages, onExit)
        underWay.add(send.underWay)
        deadlines.start(send)
        room.enter(send)
        // The caller was interrupted.
        return () => {
          cutShort(send, "closed")
          return undefined
        }
      }),
    ended: Effect.callback((resume) => {
      const end = () => resume(Effect.void)
      if (underWay.size() === 0) return end()
      onEnded.add(end)
      return Effect.sync(() => onEnded.delete(end))
    }),
    close: () => {
      for (const { send } of underWay) cutShort(send, "closed")
    }
  }
}

/** The broker's publish. One that throws fails this send, and takes up no room. */
const publishing =
  (broker: Service): Service["publish"] =>
  (messages) => {
    try {
      return broker.publish(messages)
    } catch (defect) {
      return Effect.die(defect)
    }
  }

/** The error of a publish that was interrupted: what the adapter tells of messages that it has not sent, of all others `doubt`. */
const whatIsKnown = (cause: Cause.Cause<BrokerError>, doubt: BrokerError): BrokerError => {
  const told = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (told?.entries === undefined) return told === undefined || isDoubtful(told) ? doubt : told
  const errors = told.entries.map(({ error }) => (error !== undefined && isDoubtful(error) ? doubt : error))
  return ofBatch(errors) ?? doubt
}
