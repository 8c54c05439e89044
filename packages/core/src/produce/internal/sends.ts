/** Sends in flight: in call order, each with a timeout, and under the connection's limit on unconfirmed messages. */
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

/** Why a send ended before the broker's answer. */
export type Cut = "late" | "closed"

/** The sends of one producer. */
export interface Sends {
  /** Succeeds when the broker has confirmed all of the messages. */
  readonly send: (messages: ReadonlyArray<Outgoing>) => Direct.Direct<void, BrokerError>
  readonly ended: Effect.Effect<void>
  readonly close: () => void
}

export interface Dependencies {
  readonly broker: Service
  readonly fork: (effect: Effect.Effect<void, BrokerError>) => Fiber.Fiber<void, BrokerError>
  readonly deadlines: Deadlines.Deadlines
  /** The most unconfirmed messages on the connection. */
  readonly maxPending: number
  /** The error of a send that was cut short. `isHandedOver`: the broker may have it. */
  readonly cutShort: (messages: ReadonlyArray<Outgoing>, cut: Cut, isHandedOver: boolean) => BrokerError
}

/** The part of {@link make} that a send uses. */
interface Owner {
  readonly maxPending: number
  readonly handOver: (send: Send) => void
  readonly cutShort: (send: Send, cut: Cut) => void
}

/** A send's place among those in flight; its other place is among the deadlines. A class: see `ShortList`. */
class UnderWay implements Bag.Member {
  place = -1
  readonly send: Send

  constructor(send: Send) {
    this.send = send
  }
}

/** The messages of one call. A class, because every message needs one. */
class Send implements Deadlines.Deadline {
  at = 0
  place = -1
  readonly underWay = new UnderWay(this)
  isHandedOver = false
  interrupt: (() => void) | undefined = undefined
  cut: Cut | undefined = undefined
  readonly owner: Owner
  readonly messages: ReadonlyArray<Outgoing>
  /** Its part of `maxPending`. A larger send goes alone. */
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
  readonly waiting = new Set<Send>()
  #isProceeding = false

  /** Publishes the send, now or when there is room. */
  enter(send: Send): void {
    if (this.waiting.size === 0 && this.#fits(send)) send.owner.handOver(send)
    else this.waiting.add(send)
  }

  /** Publishes the sends that fit. A broker that confirms synchronously calls this again inside the loop. */
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

  /** Returns whether it was in flight. */
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
    // Runs first, because an adapter may know which messages it has not written.
    send.interrupt?.()
    end(send, Exit.fail(errorOf(send.messages, cut, send.isHandedOver)))
  }

  const leaveRoom = (send: Send, exit: Confirmation): void => {
    room.pending -= send.size
    // An interruption from elsewhere: the adapter closes.
    const isCut = Exit.isFailure(exit) && (send.cut !== undefined || Cause.hasInterruptsOnly(exit.cause))
    if (!isCut) {
      end(send, exit)
      return room.proceed()
    }
    end(send, Exit.fail(whatIsKnown(exit.cause, errorOf(send.messages, send.cut ?? "closed", true))))
    // Later, because sends that end at the same time must not get this room.
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

/** Publishes. If the broker throws, the send fails and frees its room. */
const publishing =
  (broker: Service): Service["publish"] =>
  (messages) => {
    try {
      return broker.publish(messages)
    } catch (defect) {
      return Effect.die(defect)
    }
  }

/** The error of an interrupted publish: the adapter's for messages that it has not sent, `doubt` for all others. */
const whatIsKnown = (cause: Cause.Cause<BrokerError>, doubt: BrokerError): BrokerError => {
  const known = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (known?.entries === undefined) return known === undefined || isDoubtful(known) ? doubt : known
  const errors = known.entries.map(({ error }) => (error !== undefined && isDoubtful(error) ? doubt : error))
  return ofBatch(errors) ?? doubt
}
