/** Sends messages on the routes of their plans, and declares the objects of a route first. */
import { BrokerError, Direct } from "@requeue/core/adapter-kit"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { afterDeletion } from "../declare/afterDeletion.ts"
import type { Declarer } from "../declare/declare.ts"
import type { NativeObject } from "../declare/objects.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { OnOutcome } from "./confirms.ts"
import type { Publisher, Submission } from "./publisher.ts"
import * as Refusals from "./refusals.ts"
import type { Item, Routes } from "./routes.ts"

/** The error of each item, in order; `undefined` for one that is confirmed. */
type Outcomes = ReadonlyArray<BrokerError.BrokerError | undefined>

/** Sends messages with confirmation. */
export interface Sender {
  /** Succeeds when all are confirmed; else fails with the first error. Sends none when one cannot be sent. */
  readonly send: (items: ReadonlyArray<Item>) => Direct.Direct<void, BrokerError.BrokerError>
  /** Sends each on its own account. `confirmed` is called with an item's index as soon as it is confirmed. */
  readonly sendEach: (items: ReadonlyArray<Item>, confirmed?: (index: number) => void) => Effect.Effect<Outcomes>
}

/** An item, from the call to its outcome. A class, because there is an object for every message. */
class Sending {
  submission: Submission | undefined = undefined
  /** Whether an earlier submission was written. */
  wasWritten = false
  isWithdrawn = false
  readonly item: Item
  /** Monotonic milliseconds. */
  readonly started: number
  readonly index: number
  /** Called once with the item's index and outcome. */
  readonly onOutcome: (index: number, error: BrokerError.BrokerError | undefined) => void

  constructor(item: Item, started: number, index: number, onOutcome: Sending["onOutcome"]) {
    this.item = item
    this.started = started
    this.index = index
    this.onOutcome = onOutcome
  }
}

const isWritten = ({ submission, wasWritten }: Sending): boolean => wasWritten || submission?.written !== undefined

/** The error of an item that is given up without an outcome. */
const givenUp = (sending: Sending): BrokerError.BrokerError => {
  const { queue } = sending.item.message
  const [reason, detail] = isWritten(sending)
    ? (["ConnectionLost", "it was given up before its confirmation"] as const)
    : (["ConnectionFailed", "it was given up before it was written"] as const)
  return new BrokerError.BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason, detail })
}

/** Whether the queue, or the exchange in front of it, is not there. */
const isNowhere = (error: BrokerError.BrokerError | undefined): boolean =>
  error?.reason === "Unroutable" || error?.reason === "QueueMissing"

/** The error of an item whose objects could not be declared. */
const undeclared = ({ message, plan }: Item, cause: Cause.Cause<unknown>): BrokerError.BrokerError => {
  const { queue } = message
  const error = toBrokerError(Cause.squash(cause), { operation: "declare", queue }, "Unsupported")
  const { broker, detail, operation, reason } = error
  return reason === "QueueMissing" && plan.absent !== undefined
    ? new BrokerError.BrokerError({ broker, operation, queue, reason, detail, remedy: plan.absent })
    : error
}

/** The broker's own, which all messages share. */
interface Dependencies {
  readonly routes: Routes
  readonly declarer: Pick<Declarer, "ensure" | "knows" | "renew">
  readonly publisher: Publisher
  /** Runs an effect for as long as the broker lives. */
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

/** Tells of a route whose messages are refused, once, and once when they are taken again. */
const telling =
  ({ fork, routes }: Dependencies, refusals: Refusals.Refusals) =>
  (item: Item, error: BrokerError.BrokerError | undefined): void => {
    if (error === undefined && refusals.isEmpty()) return
    const { queue } = item.message
    const part = error === undefined ? routes.parts(item) : [routes.refused(item, error)]
    const news = part.flatMap((name) => (name === undefined ? [] : (refusals.note(name, error) ?? [])))
    if (news.length === 0) return
    const log =
      error === undefined ? Effect.logInfo("messages are taken again") : Effect.logWarning("messages are refused")
    fork(Effect.annotateLogs(log, error === undefined ? { queue } : { queue, error: error.message }))
  }

/** Starts an item: declares what it needs, and publishes it, once more where that may help. */
const starter = (dependencies: Dependencies) => {
  const { declarer, elapsed, fork, publisher, routes } = dependencies
  const refusals = Refusals.make(elapsed)
  const tell = telling(dependencies, refusals)
  /** Items that wait for the declarations of their route, which are made for all of them at once. */
  const declaring = new Map<string, Array<(error: BrokerError.BrokerError | undefined) => void>>()

  const end = (sending: Sending, error: BrokerError.BrokerError | undefined): void => {
    tell(sending.item, error)
    sending.onOutcome(sending.index, error)
  }

  const publish = (sending: Sending, onOutcome: OnOutcome): void => {
    const { isWithdrawn, item, started } = sending
    if (isWithdrawn) return
    sending.wasWritten = isWritten(sending)
    const publication = routes.publication(item, started)
    if (publication instanceof BrokerError.BrokerError) onOutcome(publication)
    else sending.submission = publisher.submit(publication, onOutcome)
  }

  /** Declares the objects of an item. If they are refused, no other route suffers. */
  const declare = (
    sending: Sending,
    route: string,
    one: (objects: ReadonlyArray<NativeObject>, queue: string) => Effect.Effect<void, BrokerError.BrokerError>,
    then: () => void
  ): void => {
    const { item } = sending
    const { queue } = item.message
    const done = (error: BrokerError.BrokerError | undefined) => (error === undefined ? then() : end(sending, error))
    const others = declaring.get(route)
    if (others !== undefined) return void others.push(done)
    const waiting = [done]
    declaring.set(route, waiting)
    const finish = (error: BrokerError.BrokerError | undefined): void => {
      declaring.delete(route)
      for (const each of waiting) each(error)
    }
    const declared = Effect.forEach(routes.needs(item), (objects) => one(objects, queue), { discard: true })
    fork(
      Effect.matchCause(declared, {
        onFailure: (cause) => finish(undeclared(item, cause)),
        onSuccess: () => finish(undefined)
      })
    )
  }

  /** Declares the objects of an unroutable item once more, because somebody has deleted them. */
  const redeclare = (sending: Sending): void => {
    const again: Declarer["renew"] = (objects, queue) => Effect.andThen(afterDeletion, declarer.renew(objects, queue))
    declare(sending, routes.name(sending.item), again, () => publish(sending, (error) => end(sending, error)))
  }

  /** Publishes for the first time. */
  const first = (sending: Sending): void =>
    publish(sending, (error, isBystander) => {
      if (isBystander === true) {
        publish(sending, (second) => {
          tell(sending.item, second)
          // The server may have stored what it has not confirmed.
          sending.onOutcome(sending.index, BrokerError.ofRepetition(error, second))
        })
      } else if (isNowhere(error)) redeclare(sending)
      else end(sending, error)
    })

  return (sending: Sending): void => {
    const { index, item, onOutcome } = sending
    const refused = routes.refusal(item) ?? (refusals.isEmpty() ? undefined : refusals.held(routes.parts(item)))
    if (refused !== undefined) return onOutcome(index, refused)
    if (routes.needs(item).every(declarer.knows)) first(sending)
    else declare(sending, routes.name(item), declarer.ensure, () => first(sending))
  }
}

/** A sender on a publisher. */
export const make = (env: Dependencies): Sender => {
  const { publisher, routes } = env
  const start = starter(env)

  /** Starts items. `confirmed` and `onEnded` are called maybe before this returns. */
  const begin = (
    items: ReadonlyArray<Item>,
    confirmed: ((index: number) => void) | undefined,
    onEnded: (outcomes: Outcomes) => void
  ) => {
    const outcomes: Array<BrokerError.BrokerError | undefined> = []
    let open = items.length
    const onOutcome: Sending["onOutcome"] = (index, error) => {
      outcomes[index] = error
      if (error === undefined) confirmed?.(index)
      if (--open === 0) onEnded(outcomes)
    }
    const started = env.elapsed()
    const sendings = items.map((item, index) => new Sending(item, started, index, onOutcome))
    sendings.forEach(start)
    return {
      withdraw: () => {
        for (const each of sendings) {
          each.isWithdrawn = true
          if (each.submission !== undefined) publisher.withdraw(each.submission)
        }
      },
      /** What is known of each by now. */
      known: (): Outcomes => sendings.map((each, index) => (index in outcomes ? outcomes[index] : givenUp(each)))
    }
  }

  return {
    sendEach: (items, confirmed) =>
      items.length === 0
        ? Effect.succeed([])
        : Effect.callback<Outcomes>((resume) => {
            const { withdraw } = begin(items, confirmed, (outcomes) => resume(Effect.succeed(outcomes)))
            return Effect.sync(withdraw)
          }),
    send: (items) =>
      Direct.make((onExit) => {
        for (const item of items) {
          const error = routes.refusal(item)
          if (error !== undefined) return Direct.ended(onExit, Exit.fail(error))
        }
        if (items.length === 0) return Direct.ended(onExit, Exit.void)
        const { known, withdraw } = begin(items, undefined, (outcomes) => {
          const failed = BrokerError.ofBatch(outcomes)
          onExit(failed === undefined ? Exit.void : Exit.fail(failed))
        })
        return () => {
          withdraw()
          return BrokerError.ofBatch(known())
        }
      })
  }
}
