/** One connection that receives the messages of a channel, from its opening to its end. */
import type { Broker, Delivery } from "@requeue/core/port"
import type * as Deferred from "effect/Deferred"
import type { Connection } from "../driver.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import { told } from "../native.ts"
import { refusedId } from "../toBrokerError.ts"
import type { Credit, Membership } from "./credit.ts"
import * as Held from "./held.ts"
import { type Answered, Receipt, receiptOf, type SettlingSession, type Written } from "./receipt.ts"
import { type Decoded, type Frame, toFrame } from "./toDelivery.ts"

export interface Session extends SettlingSession {
  /** Joins the credit. From then on messages may arrive. */
  readonly begin: (credit: Credit) => void
  /** Writes `RDY`: how many messages may be in flight. */
  readonly ready: (count: number) => void
  /** Stops receiving messages. Deliveries can still be settled. */
  readonly retire: () => void
  /** Whether all deliveries are settled. */
  readonly isIdle: () => boolean
  /** Ends the session because the connection has closed. Its deliveries still count against the credit. */
  readonly end: () => void
  /** Reports its deliveries as lost, and leaves the credit: they no longer count. */
  readonly forget: (onReconnect: Broker.SubscribeOptions["onReconnect"]) => void
  readonly replace: Held.Held["replace"]
  /** Receives a message. */
  readonly receive: (payload: Buffer) => void
  /**
   * Handles a command that nsqd refused. Returns its settlement; `"lost"` if the refusal shows that an unsettled
   * delivery is lost; `undefined` for commands that settle nothing.
   */
  readonly refuse: (text: string) => Answered | "lost" | undefined
  /** Returns all unsettled deliveries. Resolves when nsqd has handled this. */
  readonly close: () => Promise<void>
}

/** Writes the commands of one turn of the event loop together, at its end or at `flush`. */
const makeWriter = (connection: Connection) => {
  let buffered = ""
  let waiting: Array<Written> = []

  const flush = (): void => {
    if (buffered === "") return
    const [commands, written] = [buffered, waiting]
    buffered = ""
    waiting = []
    connection.write(commands, (error) => {
      for (const each of written) each(error)
    })
  }

  const write = (command: string, written: Written): void => {
    if (buffered === "") queueMicrotask(flush)
    buffered += command
    waiting.push(written)
  }
  return { flush, write }
}

const ignore: Written = () => {}

/**
 * The last settlements of a session with their commands, in a ring buffer. nsqd refuses a command immediately, so within a
 * round trip it can refuse as many as it may have in flight. No more are remembered: they would survive garbage collections.
 */
const makeAnswers = () => {
  const commands: Array<string> = []
  const last: Array<Answered | undefined> = []
  let next = 0
  let size = 1
  return {
    /** Remembers the settlements of at least two round trips. */
    reserve: (rdy: number): void => {
      size = Math.max(size, 2 * rdy)
    },
    add: (command: string, answered: Answered): void => {
      commands[next] = command
      last[next] = answered
      next = (next + 1) % size
    },
    /** Removes and returns the settlement that nsqd refuses with this text; `undefined` if there is none. */
    take: (text: string): Answered | undefined => {
      const command = `${text.slice("E_".length, "E_FIN".length)} ${refusedId(text)}`
      for (let back = 1; back <= size; back++) {
        const index = (next - back + size) % size
        const answered = last[index]
        if (answered === undefined || !commands[index]!.startsWith(command)) continue
        last[index] = undefined
        return answered
      }
      return undefined
    }
  }
}

interface SessionOptions {
  readonly node: Node
  readonly topic: Queue
  readonly connection: Connection
  /** Done when the connection has closed. */
  readonly gone: Deferred.Deferred<void>
  readonly decode: (frame: Frame, session: SettlingSession) => Decoded
  /** Whether a redelivered message is finished: nsqd did not read its `FIN`. */
  readonly isFinished: (name: string) => boolean
  /** All sessions of the subscription. */
  readonly sessions: ReadonlySet<Session>
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  readonly onDelivery: (delivery: Delivery.Delivery) => void
}

/** A class: an object literal with a getter would be slow to create and to read. */
class Received implements Delivery.Delivery {
  readonly body: Uint8Array
  readonly headers: Delivery.Delivery["headers"]
  readonly attempts: number
  readonly metadata: Delivery.Delivery["metadata"]
  readonly unreadable: Delivery.Delivery["unreadable"]
  readonly receipt: Receipt
  readonly redelivered: boolean
  readonly #frame: Frame
  constructor({ attempts, body, headers, metadata, unreadable }: Decoded, frame: Frame, receipt: Receipt) {
    this.body = body
    this.headers = headers
    this.attempts = attempts
    this.metadata = metadata
    this.unreadable = unreadable
    this.receipt = receipt
    this.redelivered = frame.attempts !== 1
    this.#frame = frame
  }
  get native() {
    return told(this.#frame, this.receipt.session)
  }
}

/** Makes a session on an open connection. */
// Long, because its functions share the connection.
export const make = (options: SessionOptions): Session => {
  const { connection, decode, elapsed, gone, isFinished, node, onDelivery, sessions, topic } = options
  const { identity } = connection
  const { flush, write } = makeWriter(connection)
  let isOpen = true
  let isClosing = false
  let membership: Membership | undefined
  const answers = makeAnswers()
  const held = Held.make({ identity, elapsed, isOpen: () => isOpen, onLost: () => membership?.settled() })

  /** Requeues a message at its end, unless it is finished: it would run again. */
  const giveBack = ({ id, name }: Pick<Receipt, "id" | "name">): void =>
    write(isFinished(name) ? `FIN ${id}\n` : `REQ ${id} 0\n`, ignore)

  /**
   * Whether another connection, to another address of nsqd, holds a later delivery. Ends an earlier one: the core has this one in
   * its place.
   */
  const isReplaced = (receipt: Receipt): boolean =>
    receipt.deliveries > 1 && [...sessions].some((other) => other !== session && other.replace(receipt))

  const session: Session = {
    node,
    topic,
    connection,
    gone,
    isOpen: () => isOpen,
    take: held.take,
    untake: held.untake,
    touch: (receipt) => {
      const isHeld = held.extend(receipt)
      if (isHeld) write(`TOUCH ${receipt.id}\n`, ignore)
      return isHeld
    },
    answer: (command, written, answered) => {
      if (answered !== undefined) answers.add(command, answered)
      write(command, written)
      // After the command, because it may write a RDY.
      membership?.settled()
    },
    begin: (credit) => {
      membership = credit.join((share) => {
        session.ready(share)
        flush()
      }, identity.maxRdyCount)
    },
    ready: (count) => {
      answers.reserve(count)
      write(`RDY ${count}\n`, ignore)
    },
    retire: () => {
      session.ready(0)
      membership?.lost()
    },
    isIdle: () => held.size() === 0,
    end: () => {
      if (!isOpen) return
      isOpen = false
      flush()
      membership?.lost()
    },
    forget: (onReconnect) => {
      // First, so the core reserves room for their handlers before other connections get their credit.
      onReconnect((delivery) => receiptOf(delivery).session === session)
      membership?.leave()
    },
    replace: held.replace,
    receive: (payload) => {
      if (!isOpen) return
      const frame = toFrame(payload)
      if (isClosing) return giveBack(frame)
      const receivedAt = elapsed()
      const decoded = decode(frame, session)
      const receipt = new Receipt(session, frame, decoded.nonce, receivedAt, receivedAt + identity.msgTimeout)
      if (isReplaced(receipt)) return
      // A redelivery after the end of a lease replaces the earlier delivery.
      if (held.add(receipt)) membership?.arrived()
      onDelivery(new Received(decoded, frame, receipt))
    },
    refuse: (text) => answers.take(text) ?? (held.lose(refusedId(text) ?? "") ? "lost" : undefined),
    close: async () => {
      isClosing = true
      membership?.leave()
      membership = undefined
      session.ready(0)
      held.clear().forEach(giveBack)
      flush()
      await connection.stop()
      // By now, messages that nsqd sent before it read `CLS` have also arrived and been returned.
      connection.end()
    }
  }
  return session
}
