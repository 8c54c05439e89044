/** The client of a broker that pushes: one connection for publishes, and one for each subscription. */
import {
  Broker,
  BrokerError,
  Connection,
  Delay,
  Outgoing,
  type Capabilities,
  type Settlement
} from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { Held } from "../world/Store.ts"
import type { Wire } from "../world/Wire.ts"
import type { World } from "../world/World.ts"
import type { Down, Server, Up } from "./Server.ts"

const capabilities: Capabilities.Capabilities = {
  broker: "push",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: 100_000,
  connectionBound: true,
  lease: undefined,
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: false, delayed: true },
  exactCounts: true,
  peek: true
}

const errorOf = (operation: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "push", operation, reason, detail })

/** Milliseconds after which an answer is not waited for. */
const timeout = 10_000

/** The callback of an exchange that has ended. */
type Then = (result: Exit.Exit<unknown, BrokerError.BrokerError>) => void

/** A connection that is made again when it breaks, after a pause. */
interface Line {
  readonly isUp: () => boolean
  readonly epoch: () => number
  readonly send: (frame: Up) => void
  readonly ask: (operation: string, frame: (seq: number) => Up, then: Then) => void
  readonly close: () => void
}

interface LineOptions {
  readonly machine: Machine
  readonly server: Server
  readonly place: string
  readonly onUp?: () => void
  readonly onDown?: () => void
  readonly onDeliver?: (frame: Extract<Down, { _tag: "Deliver" }>) => void
}

const openLine = ({ machine, onDeliver, onDown, onUp, place, server }: LineOptions): Line => {
  const asked = new Map<number, Then>()
  let wire: Wire<Up, Down> | undefined
  let epoch = 0
  let seq = 0
  let tries = 0
  let isClosed = false

  const end = (number: number, result: Exit.Exit<unknown, BrokerError.BrokerError>): void => {
    const then = asked.get(number)
    asked.delete(number)
    then?.(result)
  }

  const receive = (frame: Down): void => {
    if (frame._tag === "Deliver") return onDeliver?.(frame)
    if (frame._tag === "Done") return end(frame.seq, Exit.succeed(frame.value))
    const reason = frame.reason as BrokerError.Reason // The server refuses with reasons of errors only.
    end(frame.seq, Exit.fail(errorOf("exchange", reason, "the broker refuses it")))
  }

  const broken = (): void => {
    wire = undefined
    for (const number of asked.keys()) {
      end(number, Exit.fail(errorOf("exchange", "ConnectionLost", "the connection broke")))
    }
    onDown?.()
    if (!isClosed) again()
  }

  const again = (): void => {
    tries++
    machine.after(Math.min(100 * 2 ** tries, 5000), connect)
  }

  const connect = (): void => {
    if (isClosed) return
    const opened = server.connect(machine, place, { onDown: receive, onBroken: broken })
    if (opened === undefined) return again()
    wire = opened
    epoch++
    tries = 0
    onUp?.()
  }

  connect()
  return {
    isUp: () => wire !== undefined,
    epoch: () => epoch,
    send: (frame) => wire?.up(frame),
    ask: (operation, frame, then) => {
      if (wire === undefined) return then(Exit.fail(errorOf(operation, "ConnectionFailed", "there is no connection")))
      const number = ++seq
      asked.set(number, then)
      machine.after(timeout, () => end(number, Exit.fail(errorOf(operation, "Timeout", "no answer came"))))
      wire.up(frame(number))
    },
    close: () => {
      isClosed = true
      wire?.cut(true)
    }
  }
}

interface Receipt {
  readonly number: number
  readonly tag: number
  readonly epoch: number
  readonly nonce: number | undefined
}

const receiptOf = ({ receipt }: { readonly receipt: unknown }): Receipt => receipt as Receipt // This client makes all of them.

/** Publishes one message; `of` is the delivery that it is a copy of. */
type Publish = (outgoing: Outgoing.Outgoing, of: number | undefined, then: Then) => void

/** The copy that takes the place of a delivery; `undefined` where the server settles it by itself. */
const copyOf = (
  delivery: Parameters<typeof Outgoing.retry>[0],
  settlement: Settlement.Settlement,
  queue: string,
  now: number
): Outgoing.Outgoing | undefined => {
  switch (settlement._tag) {
    case "Retry":
      return settlement.delay === 0 ? undefined : Outgoing.retry(delivery, settlement, queue, now)
    case "Release":
      return settlement.delay === 0 ? undefined : Outgoing.hop(delivery, settlement, queue, now)
    case "DeadLetter":
      return Outgoing.deadLetter(delivery, settlement, queue, now)
    default:
      return undefined
  }
}

/**
 * Subscribes by a connection of its own.
 *
 * Long, because settlements, deliveries and credit are of one connection.
 */
const subscribing =
  (machine: Machine, server: Server, publish: Publish, isNameless: boolean): Broker.Service["subscribe"] =>
  ({ onDelivery, onReconnect, queue, retry }) => {
    let credit = 0
    let lives = 0
    /** The copies that were acknowledged: an ack that was lost with its connection is written again. */
    const settled = new Set<number>()
    const isSettled = ({ nonce }: Receipt): boolean => nonce !== undefined && settled.has(nonce)
    const open = (): Line =>
      openLine({
        machine,
        server,
        place: `${machine.name} consume ${queue}`,
        onUp: () => void machine.after(0, consume),
        onDeliver: ({ count, delivery: number, parcel, tag }) => {
          const receipt: Receipt = { number, tag, epoch: line.epoch(), nonce: isNameless ? undefined : parcel.nonce }
          if (isSettled(receipt)) return line.send({ _tag: "Ack", tag })
          onDelivery(Parcels.toDelivery(parcel, machine, { delivery: number, count, receipt }))
        }
      })
    const consume = (): void => {
      if (lives++ > 0) onReconnect()
      const limit = retry.maxDeliveries + 10
      line.ask(
        "subscribe",
        (seq) => ({ _tag: "Consume", seq, queue, limit }),
        () => {}
      )
      line.send({ _tag: "Credit", credit })
    }
    let line: Line
    const isOurs = ({ epoch }: Receipt): boolean => line.isUp() && epoch === line.epoch()

    const settleOne = (
      { delivery, settlement }: Broker.SettleRequest,
      then: (failure?: Broker.SettleFailure) => void
    ) => {
      const receipt = receiptOf(delivery)
      const lost = () =>
        then({ delivery, error: errorOf("settle", "LeaseLost", "its connection is lost"), fate: "gone" })
      const acknowledge = (): void => {
        if (isOurs(receipt)) line.send({ _tag: "Ack", tag: receipt.tag })
        if (receipt.nonce !== undefined) settled.add(receipt.nonce)
        // Once a copy is stored, the work is done, whatever becomes of the ack.
        else if (!isOurs(receipt)) return lost()
        then()
      }
      if (!isOurs(receipt)) return lost()
      // Its copy was stored after it had come again.
      if (isSettled(receipt)) return acknowledge()
      const copy = copyOf(delivery, settlement, queue, machine.wallClock())
      if (copy !== undefined) {
        return publish(copy, receipt.number, (result) => {
          if (Exit.isSuccess(result)) return acknowledge()
          if (!isOurs(receipt)) return lost()
          const error = Exit.findErrorOption(result)
          const reason = error._tag === "Some" ? error.value : errorOf("settle", "Unsupported", "the client died")
          return then({ delivery, error: reason, fate: Broker.fateOf(reason) })
        })
      }
      if (settlement._tag === "Ack" || settlement._tag === "Drop") return acknowledge()
      line.send({ _tag: "Requeue", tag: receipt.tag, counted: settlement._tag === "Retry" })
      then()
    }

    const settle: Broker.Subscription["settle"] = (requests) =>
      Effect.callback((resume) => {
        const failures: Array<Broker.SettleFailure> = []
        let left = requests.length
        for (const request of requests) {
          settleOne(request, (failure) => {
            if (failure !== undefined) failures.push(failure)
            if (--left === 0) resume(Effect.succeed(failures))
          })
        }
      })

    const started = Effect.sync((): Broker.Subscription => {
      line = open()
      return {
        credit: (limit) => {
          credit = limit
          line.send({ _tag: "Credit", credit })
        },
        settle,
        extend: () => Effect.succeed([]),
        identify: (delivery) => {
          const { nonce } = receiptOf(delivery)
          return nonce === undefined ? undefined : String(nonce)
        }
      }
    })
    return Effect.acquireRelease(started, () => Effect.sync(() => line.close()))
  }

/** The client of one process. */
export const make = (world: World, machine: Machine, server: Server): Broker.Service => {
  const tracker = Connection.track("up", machine.wallClock)
  const publisher = openLine({
    machine,
    server,
    place: `${machine.name} publish`,
    onUp: () => tracker.set("up"),
    onDown: () => tracker.set("down")
  })
  const publish: Publish = (outgoing, of, then) => {
    const { delay, queue } = outgoing
    const parcel = Parcels.fromOutgoing(world, outgoing)
    publisher.ask("publish", (seq) => ({ _tag: "Publish", seq, queue, parcel, delay, of }), then)
  }
  const ask = <A>(operation: string, frame: (seq: number) => Up): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.callback((resume) =>
      publisher.ask(operation, frame, (result) => {
        resume(result as Exit.Exit<A, BrokerError.BrokerError>) // The server answers what was asked.
      })
    )

  return {
    capabilities,
    connection: tracker.current,
    publish: (messages) =>
      Effect.forEach(
        messages,
        (message) => Effect.callback<unknown, BrokerError.BrokerError>((resume) => publish(message, undefined, resume)),
        { concurrency: "unbounded", discard: true }
      ),
    subscribe: subscribing(machine, server, publish, world.scenario.isNameless === true),
    admin: {
      counts: (queue) =>
        Effect.map(
          ask<{ ready: number; delayed: number }>("counts", (seq) => ({ _tag: "Counts", seq, queue })),
          (counts) => ({ ...counts, inFlight: undefined })
        ),
      purge: (queue) => ask("purge", (seq) => ({ _tag: "Purge", seq, queue })),
      peek: (queue, limit) =>
        Effect.map(
          ask<ReadonlyArray<Held>>("peek", (seq) => ({ _tag: "Peek", seq, queue, limit })),
          (held) =>
            held.map(({ count, parcel }) =>
              Parcels.toDelivery(parcel, machine, { delivery: 0, count: count + 1, receipt: { number: 0 } })
            )
        )
    }
  }
}
