/**
 * One connection that is handed messages. What was delivered here is settled here or not at all: nsqd takes it from
 * nobody else.
 */
import type { Delivery } from "@requeue/core/adapter-kit"
import type * as Deferred from "effect/Deferred"
import type { Connection } from "../client.ts"
import type { Credit, Handle } from "./credit.ts"
import type { Live } from "../connect/connection.ts"
import type { Queue } from "../names.ts"
import type { Node } from "../connect/nodes.ts"
import { refusedId } from "../toBrokerError.ts"
import { type Frame, toFrame } from "./toDelivery.ts"

/** What a delivery's receipt holds. */
export interface Receipt {
  readonly session: Session
  readonly id: string
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
}

type Done = (error: Error | null | undefined) => void

export interface Session extends Live {
  readonly node: Node
  readonly topic: Queue
  readonly isOpen: () => boolean
  /** Takes the delivery for settling; false when it is not ours any more, or somebody settles it already. */
  readonly take: (receipt: Receipt) => boolean
  /** Gives it back unsettled. */
  readonly untake: (receipt: Receipt) => void
  /** Still ours, and nobody settles it. */
  readonly holds: (receipt: Receipt) => boolean
  /** Writes the answer to a delivery that was taken; calls back when it has left us. */
  readonly answer: (command: string, done: Done) => void
  /** Does without a delivery that is lost. */
  readonly drop: (receipt: Receipt) => void
  /** Writes something else about a delivery. */
  readonly write: (command: string, done: Done) => void
  /** Joins the credit: from now on messages may come. */
  readonly begin: (credit: Credit) => void
  /** Takes no more, and leaves alone what it delivered. */
  readonly retire: () => void
  /** Nothing that it delivered is unsettled. */
  readonly isIdle: () => boolean
  /** The connection has closed. */
  readonly end: () => void
  /** Nobody works any more at what it delivered. */
  readonly forget: () => void
  readonly receive: (payload: Buffer) => void
  /** nsqd did not take an answer; true when that was about a delivery that is still ours, until now. */
  readonly refuse: (text: string) => boolean
  /** Takes no more, gives back what is unsettled, and resolves when nsqd has handled all that. */
  readonly close: () => Promise<void>
}

export const make = (env: {
  readonly node: Node
  readonly topic: Queue
  readonly connection: Connection
  readonly gone: Deferred.Deferred<void>
  readonly toDelivery: (frame: Frame, receipt: Receipt) => Delivery.Delivery
  readonly onDelivery: (delivery: Delivery.Delivery) => void
}): Session => {
  const { connection, gone, node, topic } = env
  /** Deliveries that nobody settles yet, by message. */
  const unsettled = new Map<string, Receipt>()
  /** Commands that are written together, at the end of this turn. */
  let gathered = ""
  let waiting: Array<Done> = []
  let isOpen = true
  let isClosing = false
  let handle: Handle | undefined

  const flush = (): void => {
    if (gathered === "") return
    const [commands, done] = [gathered, waiting]
    gathered = ""
    waiting = []
    connection.write(commands, (error) => {
      for (const each of done) each(error)
    })
  }

  const write = (command: string, done: Done): void => {
    if (gathered === "") queueMicrotask(flush)
    gathered += command
    waiting.push(done)
  }

  const giveBack = (): void => {
    for (const id of unsettled.keys()) write(`REQ ${id} 0\n`, () => {})
    unsettled.clear()
    flush()
  }

  const receive = (payload: Buffer): void => {
    if (!isOpen) return
    const frame = toFrame(payload)
    const receipt: Receipt = { session, id: frame.id, deliveries: frame.attempts }
    // The lease of an earlier delivery may have ended here: then this one takes its place.
    if (!unsettled.has(frame.id)) handle?.arrived()
    unsettled.set(frame.id, receipt)
    if (isClosing) giveBack()
    else env.onDelivery(env.toDelivery(frame, receipt))
  }

  const session: Session = {
    node,
    topic,
    connection,
    gone,
    isOpen: () => isOpen,
    take: (receipt) => unsettled.get(receipt.id) === receipt && unsettled.delete(receipt.id),
    untake: (receipt) => {
      if (!unsettled.has(receipt.id)) unsettled.set(receipt.id, receipt)
    },
    holds: (receipt) => unsettled.get(receipt.id) === receipt,
    write,
    answer: (command, done) => {
      write(command, done)
      // Last, because it may write a RDY.
      handle?.settled()
    },
    drop: (receipt) => {
      if (session.take(receipt)) handle?.settled()
    },
    begin: (credit) => {
      const rdy = (share: number): void => {
        write(`RDY ${share}\n`, () => {})
        flush()
      }
      handle = credit.join(rdy, connection.identity.maxRdyCount)
    },
    retire: () => {
      write("RDY 0\n", () => {})
      handle?.lost()
    },
    isIdle: () => unsettled.size === 0,
    end: () => {
      if (!isOpen) return
      isOpen = false
      flush()
      handle?.lost()
    },
    forget: () => handle?.leave(),
    receive,
    refuse: (text) => {
      const receipt = unsettled.get(refusedId(text) ?? "")
      if (receipt !== undefined) session.drop(receipt)
      return receipt !== undefined
    },
    close: async () => {
      isClosing = true
      handle?.leave()
      handle = undefined
      write("RDY 0\n", () => {})
      giveBack()
      await connection.stop()
      // Messages that were on their way when nsqd heard of the end have been given back by now, too.
      connection.end()
    }
  }
  return session
}
