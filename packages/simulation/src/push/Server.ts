/**
 * A broker that pushes, such as RabbitMQ: deliveries belong to their connection, publishes are confirmed, acks are not answered.
 *
 * | unkindness | source |
 * | --- | --- |
 * | an ack has no answer: if it is lost with its connection, the message is redelivered | https://www.rabbitmq.com/docs/confirms |
 * | a publish may be stored though its confirmation never arrives | https://www.rabbitmq.com/docs/confirms |
 * | an unacked message is redelivered only when the server notices that the connection is lost | https://www.rabbitmq.com/docs/heartbeats |
 * | every return counts, and beyond the limit the broker moves the message away | https://www.rabbitmq.com/docs/quorum-queues |
 * | a message returns to its position in the queue, and may so repeatedly precede others | https://www.rabbitmq.com/docs/nack |
 * | a smaller prefetch takes back no message in flight | https://www.rabbitmq.com/docs/consumer-prefetch |
 */
import type { Machine } from "../world/Machine.ts"
import * as Store from "../world/Store.ts"
import * as Wire from "../world/Wire.ts"
import type { World } from "../world/World.ts"

/** A frame from a client. `seq` is answered. */
export type Up =
  | {
      readonly _tag: "Publish"
      readonly seq: number
      readonly queue: string
      readonly parcel: Store.Parcel
      readonly delay: number
      readonly of: number | undefined
    }
  | { readonly _tag: "Consume"; readonly seq: number; readonly queue: string; readonly limit: number }
  | { readonly _tag: "Credit"; readonly credit: number }
  | { readonly _tag: "Ack"; readonly tag: number }
  | { readonly _tag: "Requeue"; readonly tag: number; readonly counted: boolean }
  | { readonly _tag: "Counts" | "Purge"; readonly seq: number; readonly queue: string }

/** A frame from the server. */
export type Down =
  | { readonly _tag: "Done"; readonly seq: number; readonly value?: unknown }
  | { readonly _tag: "Refused"; readonly seq: number; readonly reason: string }
  | {
      readonly _tag: "Deliver"
      readonly tag: number
      readonly delivery: number
      readonly parcel: Store.Parcel
      readonly count: number
    }

/** The server. */
export interface Server {
  /** Opens a connection; `undefined` while the server is down. */
  readonly connect: (
    machine: Machine,
    place: string,
    ends: Pick<Wire.Ends<Up, Down>, "onDown" | "onBroken">
  ) => Wire.Wire<Up, Down> | undefined
  /** Breaks all connections, and restarts after a while with all that it had stored. */
  readonly restart: (away: number) => void
  /** A producer outside publishes. */
  readonly publish: (queue: string, parcel: Store.Parcel, stored: () => void) => void
  /** Accepts no publishes for a while. */
  readonly throttle: (millis: number) => void
}

interface Unacked {
  readonly held: Store.Held
  readonly delivery: number
}

interface Connection {
  readonly wire: Wire.Wire<Up, Down>
  readonly process: string
  queue: string | undefined
  limit: number
  credit: number
  readonly unacked: Map<number, Unacked>
}

/** The queue that the server's own limit moves messages to. */
const backstop = "work.dlq"

/**
 * A server without messages.
 *
 * Long, because a reader needs the whole model at once.
 */
export const make = (world: World): Server => {
  const connections = new Set<Connection>()
  let isUp = true
  let blockedUntil = 0

  const serve = (queue: string): void => {
    for (let found = next(queue); found !== undefined; found = next(queue)) {
      const held = store.take(queue)
      if (held === undefined) return
      hand(found, held)
    }
  }

  /** The consumer with the fewest unacked messages among those that have room. */
  const next = (queue: string): Connection | undefined => {
    let best: Connection | undefined
    if (!isUp) return undefined
    for (const each of connections) {
      if (each.queue !== queue || each.unacked.size >= each.credit) continue
      if (best === undefined || each.unacked.size < best.unacked.size) best = each
    }
    return best
  }

  const hand = (to: Connection, held: Store.Held): void => {
    const delivery = store.handOut(held, to.process)
    if (held.count > to.limit) return store.move(held, backstop)
    const { count, parcel } = held
    to.unacked.set(delivery, { held, delivery })
    to.wire.down({ _tag: "Deliver", tag: delivery, delivery, parcel, count })
  }

  const store = Store.make(world, (queue) => serve(queue))

  const lose = (connection: Connection, why: "connection" | "restart"): void => {
    if (!connections.delete(connection)) return
    for (const { delivery, held } of connection.unacked.values()) store.back(held, delivery, 0, why)
    connection.unacked.clear()
  }

  const publish = (to: Connection, { delay, of, parcel, queue, seq }: Extract<Up, { _tag: "Publish" }>): void => {
    const busy = world.now() < blockedUntil || world.fault("busy", `${to.process} publish`)
    const reason = busy ? "Throttled" : Store.refusal(world, queue, parcel)
    if (reason !== undefined) return to.wire.down({ _tag: "Refused", seq, reason })
    store.keep(queue, parcel, delay, { process: to.process, of })
    to.wire.down({ _tag: "Done", seq })
  }

  const onUp = (from: Connection, frame: Up): void => {
    if (!connections.has(from)) return
    switch (frame._tag) {
      case "Publish":
        return publish(from, frame)
      case "Consume":
        from.queue = frame.queue
        from.limit = frame.limit
        return from.wire.down({ _tag: "Done", seq: frame.seq })
      case "Credit":
        from.credit = frame.credit
        return from.queue === undefined ? undefined : serve(from.queue)
      case "Ack":
      case "Requeue":
        return settle(from, frame)
      case "Counts":
        return from.wire.down({ _tag: "Done", seq: frame.seq, value: store.counts(frame.queue) })
      case "Purge":
        return from.wire.down({ _tag: "Done", seq: frame.seq, value: store.purge(frame.queue) })
    }
  }

  const settle = (from: Connection, frame: Extract<Up, { _tag: "Ack" | "Requeue" }>): void => {
    const found = from.unacked.get(frame.tag)
    if (found === undefined) {
      world.record({ _tag: "Defect", process: from.process, detail: `PRECONDITION_FAILED: unknown tag ${frame.tag}` })
      return
    }
    from.unacked.delete(frame.tag)
    if (frame._tag === "Ack") {
      store.gone(found.held, "settled", found.delivery)
    } else {
      if (!frame.counted) found.held.count--
      store.back(found.held, found.delivery, 0, "asked")
    }
    serve(from.queue!)
  }

  return {
    connect: (machine, place, ends) => {
      if (!isUp) return undefined
      const wire = Wire.open<Up, Down>(world, machine, place, {
        ...ends,
        onUp: (frame) => onUp(connection, frame),
        onLost: () => lose(connection, "connection")
      })
      const connection: Connection = {
        wire,
        process: machine.name,
        queue: undefined,
        limit: Number.POSITIVE_INFINITY,
        credit: 0,
        unacked: new Map()
      }
      connections.add(connection)
      return wire
    },
    publish: (queue, parcel, stored) => {
      store.keep(queue, parcel, 0, { process: undefined, of: undefined })
      stored()
    },
    restart: (away) => {
      isUp = false
      for (const connection of connections) {
        connection.wire.cut(true)
        lose(connection, "restart")
      }
      world.after(away, () => {
        isUp = true
      })
    },
    throttle: (millis) => {
      blockedUntil = world.now() + millis
    }
  }
}
