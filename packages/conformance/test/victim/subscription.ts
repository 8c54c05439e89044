/** Subscriptions: messages are asked for, leased to one process, and settled by their receipts. */
import { Broker, BrokerError, type Delivery, Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Driver } from "./driver.ts"
import type { Held, Row } from "./file.ts"
import { toDelivery } from "./toDelivery.ts"

/** Milliseconds from one look for messages to the next. */
export const pollInterval = 50

/** Milliseconds. */
export const lease = 2000

/** The tools of one process. */
export interface Process {
  readonly driver: Driver
  /** Names the process among all that share the file. */
  readonly name: string
  readonly now: () => number
  readonly publish: (messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError>
  readonly declare: (queues: ReadonlyArray<string>) => Effect.Effect<void, BrokerError.BrokerError>
  /** The names of messages whose copy is stored: their settlement has succeeded, and only the original may be left. */
  readonly copied: Set<string>
  /** Told of each look for messages, whether it succeeded. */
  readonly browsed: (hasSucceeded: boolean) => void
}

/** The handle of one delivery. */
interface Receipt extends Held {
  until: number
  isTaken: boolean
}

const receiptOf = ({ receipt }: Delivery.Delivery) => receipt as Receipt // `subscribe` made it

/** Names the copy of a message; no other message of the file has its place. */
const nameOf = (delivery: Delivery.Delivery): string => String(receiptOf(delivery).seq)

const heldOf = ({ receipt, seq }: Receipt): Held => ({ receipt, seq })

const gone = (operation: string, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "file", operation, queue, reason: "LeaseLost", detail: "the lease has ended" })

const isMine = (own: Effect.Effect<boolean, BrokerError.BrokerError>, queue: string) =>
  Effect.flatMap(own, (isHeld) => (isHeld ? Effect.void : Effect.fail(gone("settle", queue))))

/** The file itself would drop messages. */
const limited = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "file",
    operation: "subscribe",
    queue,
    reason: "QueueMismatch",
    detail: "the queue has a limit of deliveries of its own",
    remedy: "Remove the limit, or use another queue"
  })

let receipts = 0

/** Carries out one settlement. */
const carryOut = (
  { delivery, settlement }: Broker.SettleRequest,
  queue: string,
  { copied, driver, now, publish }: Process
): Effect.Effect<void, BrokerError.BrokerError> => {
  const receipt = receiptOf(delivery)
  const held = heldOf(receipt)
  const settle = (run: Parameters<typeof driver.call<boolean>>[1]) => isMine(driver.call("settle", run), queue)
  const remove = settle((file) => file.ack(held))
  const due = (delay: number) => (delay === 0 ? 0 : now() + delay)
  const stored = (copy: Outgoing.Outgoing) =>
    Effect.suspend(() =>
      // Nobody may copy what somebody else has by now.
      receipt.until <= now()
        ? Effect.fail(gone("settle", queue))
        : Effect.map(publish([copy]), () => void copied.add(nameOf(delivery)))
    )
  /** The original goes after its copy is stored. Whatever becomes of that, the settlement has succeeded. */
  const replace = (copy: Outgoing.Outgoing) => Effect.andThen(stored(copy), Effect.ignore(remove))
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return remove
    case "Retry": {
      const copy = Outgoing.retry(delivery, settlement, queue, now())
      return settlement.delay === 0 ? settle((file) => file.retry(held, copy.metadata)) : replace(copy)
    }
    case "DeadLetter":
      return replace(Outgoing.deadLetter(delivery, settlement, queue, now()))
    case "Release":
      return settle((file) => file.release(held, due(settlement.delay)))
  }
}

/** Opens a subscription. When its scope closes, what is unsettled is given back. */
export const subscribe = (
  { deadLetterQueues, onDelivery, queue }: Broker.SubscribeOptions,
  process: Process
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { copied, driver, name, now } = process
    const open = new Set<Receipt>()
    let credit = 0

    /** Delivers a message, or removes it where its copy is stored already. */
    const arrive = (row: Row, receipt: Receipt) =>
      Effect.suspend(() => {
        const delivery = toDelivery(row, receipt)
        if (copied.has(nameOf(delivery)))
          return Effect.ignore(driver.call("settle", (file) => file.ack(heldOf(receipt))))
        open.add(receipt)
        return Effect.sync(() => onDelivery(delivery))
      })

    const receive = Effect.suspend(() => {
      // What lost its lease takes no room.
      for (const receipt of open) if (receipt.until <= now()) open.delete(receipt)
      const limit = credit - open.size
      if (limit <= 0) return Effect.void
      const wanted = { queue, receipt: `${name} ${++receipts}`, now: now(), until: now() + lease, limit }
      return Effect.flatMap(
        driver.call("receive", (file) => {
          file.declare(queue)
          return file.receive(wanted)
        }),
        (rows) => Effect.forEach(rows, (row) => arrive(row, { seq: row.seq, ...wanted, isTaken: false }))
      )
    })
    const look = Effect.match(receive, {
      onSuccess: () => process.browsed(true),
      onFailure: () => process.browsed(false)
    })

    const settle = (request: Broker.SettleRequest): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
      const { delivery } = request
      const receipt = receiptOf(delivery)
      if (receipt.isTaken) return Effect.succeed([{ delivery, error: gone("settle", queue), fate: "lost" }])
      receipt.isTaken = true
      return Effect.match(carryOut(request, queue, process), {
        onSuccess: () => {
          open.delete(receipt)
          return []
        },
        onFailure: (error) => {
          const fate = Broker.fateOf(error)
          receipt.isTaken = false
          if (fate === "lost") open.delete(receipt)
          return [{ delivery, error, fate }]
        }
      })
    }

    const extend = (delivery: Delivery.Delivery): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
      const receipt = receiptOf(delivery)
      const until = now() + lease
      const renewed = driver.call("extend", (file) => file.extend(heldOf(receipt), until, now()))
      return Effect.match(renewed, {
        onSuccess: (isHeld) => {
          if (isHeld) receipt.until = until
          return isHeld ? [] : [{ delivery, error: gone("extend", queue), fate: "lost" }]
        },
        onFailure: (error) => [{ delivery, error, fate: Broker.fateOf(error) }]
      })
    }

    yield* process.declare([queue, ...deadLetterQueues])
    const limit = yield* driver.call("publish", (file) => file.limitOf(queue))
    if (limit !== undefined) return yield* Effect.fail(limited(queue))
    yield* Effect.addFinalizer(() => {
      const held = [...open].map(heldOf)
      return Effect.ignore(driver.call("settle", (file) => held.forEach(file.giveBack)))
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(look, Effect.sleep(pollInterval))))
    return {
      credit: (limit) => void (credit = limit),
      settle: (requests) => Effect.map(Effect.forEach(requests, settle), (failures) => failures.flat()),
      extend: (deliveries) => Effect.map(Effect.forEach(deliveries, extend), (failures) => failures.flat()),
      identify: nameOf
    }
  })
