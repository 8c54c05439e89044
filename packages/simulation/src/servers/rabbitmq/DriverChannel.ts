/**
 * A channel of the driver on a simulated server: the promises, events, errors and limits of amqplib 2.3.1, whose file
 * `lib/channel.js` is the source of all rules here.
 *
 * | rule |
 * | --- |
 * | one request is under way at a time; the others wait for its answer |
 * | settlements and publications are written at once |
 * | a refused request fails with the server's words, and the others with a text that does not name them |
 * | on a closed channel, requests and settlements throw |
 * | confirmations that are missing when the channel closes fail |
 */
import { EventEmitter } from "node:events"
import type { ConfirmChannel } from "@requeue/adapter-rabbitmq/driver"
import type { Sent } from "./Faults.ts"
import * as Fields from "./Fields.ts"
import * as Frames from "./Frames.ts"
import { propertiesOf } from "./Options.ts"
import * as Receiving from "./Receiving.ts"
import { format, type Refusal } from "./Refusal.ts"
import { type Request, Requests } from "./Requests.ts"
import type { Frame } from "./Server.ts"
import * as Declaring from "./Declaring.ts"
import type { Delivery } from "./Deliveries.ts"
import type { Publication } from "./Message.ts"
import type { Ends, Session } from "./Session.ts"

/** The connection, as its channels see it. */
export interface Link {
  readonly frameMax: number
  /** Sends a frame to the server, where `run` is called. */
  readonly send: (sent: Sent, run: () => void) => void
  /** Sends a frame to the client; `isAsked`: the answer to a request. */
  readonly answer: (arrive: () => void, isAsked?: boolean) => void
  readonly open: (ends: Ends) => Session
  readonly receive: (session: Session, ends: Ends, frame: Frame) => void
  readonly released: (channel: DriverChannel) => void
  /** A message arrives, in these bytes. */
  readonly arrived: (content: Buffer, delivery: Delivery) => void
  /** A message is written, from these bytes. May throw the driver's error. */
  readonly publishes: (publication: Publication, content: Buffer) => void
}

/** The driver's error for operations on a closed channel. */
class IllegalOperationError extends Error {
  override readonly name = "IllegalOperationError"
}

type Got = Exclude<Awaited<ReturnType<ConfirmChannel["get"]>>, false>

const nothing = () => {}
/** A channel. */
export class DriverChannel extends EventEmitter implements ConfirmChannel {
  /** The members that the adapter's writer reads, with the driver's names. */
  readonly ch: number
  readonly connection: {
    readonly frameMax: number
    readonly channels: Readonly<
      Record<number, { readonly buffer: { readonly write: (frames: Buffer, run?: () => void) => boolean } }>
    >
  }
  readonly unconfirmed: Array<Receiving.Done> = []
  readonly consumers = new Map<string, (message: Receiving.Message) => void>()
  readonly assertQueue: ConfirmChannel["assertQueue"]
  readonly checkQueue: ConfirmChannel["checkQueue"]
  readonly deleteQueue: ConfirmChannel["deleteQueue"]
  readonly purgeQueue: ConfirmChannel["purgeQueue"]
  readonly bindQueue: ConfirmChannel["bindQueue"]
  readonly unbindQueue: ConfirmChannel["unbindQueue"]
  readonly assertExchange: ConfirmChannel["assertExchange"]
  readonly checkExchange: ConfirmChannel["checkExchange"]
  readonly deleteExchange: ConfirmChannel["deleteExchange"]
  readonly #link: Link
  readonly #ends: Ends
  #session: Session | undefined
  readonly #requests: Requests
  #state: "open" | "closing" | "closed" = "open"
  #consumed = ""

  constructor(link: Link, number: number) {
    super()
    this.#link = link
    this.ch = number
    const write = (frames: Buffer, run?: () => void): boolean => {
      if (run === undefined)
        for (const tag of Frames.ackedTags(frames)) this.#settle((session) => session.ack(tag, false))
      else run()
      return true
    }
    this.connection = { frameMax: link.frameMax, channels: { [number]: { buffer: { write } } } }
    this.#ends = Receiving.make(this, link.answer, () => this.#state === "open", link.arrived)
    this.#requests = new Requests((request) => this.#write(request))
    const declaring = Declaring.make((method, sent, run) => this.#ask(method, sent, run))
    this.assertQueue = declaring.assertQueue
    this.checkQueue = declaring.checkQueue
    this.deleteQueue = declaring.deleteQueue
    this.purgeQueue = declaring.purgeQueue
    this.bindQueue = declaring.bindQueue
    this.unbindQueue = declaring.unbindQueue
    this.assertExchange = declaring.assertExchange
    this.checkExchange = declaring.checkExchange
    this.deleteExchange = declaring.deleteExchange
    this.on("error", nothing)
    // Before all listeners of the adapter, except those that it prepends.
    this.on("close", () => {
      const error = new Error("channel closed")
      for (const done of this.unconfirmed.splice(0)) done(error, {})
    })
  }

  /** Opens the channel. */
  async open(confirms: boolean): Promise<this> {
    await this.#ask<void>("ChannelOpen", { name: "channel", about: "" }, nothing)
    if (confirms) await this.#ask<void>("ConfirmSelect", other, (session) => session.selectConfirms())
    return this
  }

  prefetch: ConfirmChannel["prefetch"] = (count) =>
    this.#ask("BasicQos", other, (session) => {
      session.prefetch(count)
      return {}
    })

  consume: ConfirmChannel["consume"] = (queue, onMessage, options = {}) => {
    this.#consumed = queue
    const { consumerTag, exclusive, priority } = options
    return this.#ask(
      "BasicConsume",
      { name: "consume", about: queue },
      (session) => session.consume(queue, { consumerTag, exclusive, priority }),
      // The caller's function is known before the first message arrives.
      (_, { begin, consumerTag: tag }: ReturnType<Session["consume"]>) => {
        this.#link.answer(() => this.consumers.set(tag, onMessage), true)
        begin()
      }
    )
  }

  cancel: ConfirmChannel["cancel"] = async (consumerTag) => {
    const cancelled = await this.#ask<{ consumerTag: string }>("BasicCancel", other, (session) =>
      session.cancel(consumerTag)
    )
    this.consumers.delete(consumerTag)
    return cancelled
  }

  get: ConfirmChannel["get"] = async (queue, { noAck = false } = {}) => {
    const delivery = await this.#ask<Delivery | undefined>("BasicGet", other, (session) => session.get(queue, noAck))
    if (delivery === undefined) return false
    const message = Receiving.toMessage(delivery, {})
    this.#link.arrived(message.content, delivery)
    return message as unknown as Got // It has the members that the adapter reads.
  }

  ack: ConfirmChannel["ack"] = ({ fields: { deliveryTag } }, isMultiple = false) =>
    this.#settle((session) => session.ack(deliveryTag, isMultiple))

  ackAll: ConfirmChannel["ackAll"] = () => this.#settle((session) => session.ack(0, true))

  nack: ConfirmChannel["nack"] = ({ fields: { deliveryTag } }, isMultiple = false, isRequeued = true) =>
    this.#settle((session) => session.nack(deliveryTag, isMultiple, isRequeued))

  nackAll: ConfirmChannel["nackAll"] = (isRequeued = true) =>
    this.#settle((session) => session.nack(0, true, isRequeued))

  reject: ConfirmChannel["reject"] = ({ fields: { deliveryTag } }, isRequeued = true) =>
    this.#settle((session) => session.reject(deliveryTag, isRequeued))

  // A method that reads all members from `this`: the adapter's writer calls it on an object with this prototype.
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: Parameters<ConfirmChannel["publish"]>[3] = {},
    done: Receiving.Done = nothing
  ): boolean {
    const { headers = {}, mandatory = false, ...others } = options as Readonly<Record<string, unknown>> // All are optional.
    const table = Fields.encode(Object(headers))
    const properties = propertiesOf(others)
    const size = Frames.headerSize(table, properties)
    const publication = { exchange, routingKey, properties, table, content: Buffer.from(content) }
    const isWritten = this.connection.channels[this.ch]!.buffer.write(Frames.ofSizes(8, size), () => {
      this.#link.publishes(publication, content)
      this.send(
        { name: "publish", about: `${exchange} ${routingKey}` },
        (session) => session.publish(publication, mandatory === true),
        size
      )
    })
    this.unconfirmed.push(done)
    return isWritten
  }

  close = (): Promise<void> =>
    new Promise((resolve) => {
      this.#check()
      this.#state = "closing"
      this.#link.send(other, () => {
        this.#session?.close()
        this.#link.answer(() => {
          if (this.#state !== "closing") return
          resolve()
          this.end()
        })
      })
    })

  /** Moves to the closed state. */
  end(): void {
    if (this.#state === "closed") return
    this.#state = "closed"
    this.#requests.end()
    this.#link.released(this)
    this.emit("close")
  }

  /** Sends a frame without an answer. */
  send(sent: Sent, run: (session: Session) => void, size = 0): void {
    this.#check()
    this.#link.send(sent, () => this.#carryOut(sent.name === "publish" ? "BasicPublish" : "BasicAck", run, size))
  }

  #check(): void {
    if (this.#state !== "open")
      throw new IllegalOperationError(this.#state === "closed" ? "Channel closed" : "Channel closing")
  }

  #settle(run: (session: Session) => void): void {
    this.send({ name: "settle", about: this.#consumed }, run)
  }

  #carryOut(method: string, run: (session: Session) => void, size = 0): void {
    const session = (this.#session ??= this.#link.open(this.#ends))
    this.#link.receive(session, this.#ends, { method, size, run: () => run(session) })
  }

  #ask<A>(
    method: string,
    sent: Sent,
    run: (session: Session) => unknown,
    after: (session: Session, answer: never) => void = nothing
  ): Promise<A> {
    return new Promise<A>((resolve) => {
      this.#check()
      resolve(this.#requests.add({ method, sent, run, after }))
    })
  }

  #write({ after, method, run, sent }: Request): void {
    this.#link.send(sent, () =>
      this.#carryOut(method, (session) => {
        const answer = run(session)
        this.#link.answer(() => this.#state === "open" && this.#requests.answered(answer), true)
        after(session, answer as never) // It gets what `run` returns.
      })
    )
  }

  /** The server has closed the channel. */
  closed(refusal: Refusal): void {
    this.#requests.refused(refusal)
    this.emit("error", new Error(`Channel closed by server: ${format(refusal)}`))
    this.end()
  }
}

const other: Sent = { name: "other", about: "" }
