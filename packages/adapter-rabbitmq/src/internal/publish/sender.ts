/** Sends messages on the routes of their plans, and declares the objects of a route first. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
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
  readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Sends each on its own account. `confirmed` is called with an item's index as soon as it is confirmed. */
  readonly sendEach: (items: ReadonlyArray<Item>, confirmed?: (index: number) => void) => Effect.Effect<Outcomes>
}

/** An item, from the call to its outcome. */
interface Sending {
  readonly item: Item
  /** Monotonic milliseconds. */
  readonly started: number
  onOutcome: OnOutcome
  submission: Submission | undefined
  /** Whether an earlier submission was written. */
  wasWritten: boolean
  isWithdrawn: boolean
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
    { item, onOutcome }: Sending,
    route: string,
    one: (objects: ReadonlyArray<NativeObject>, queue: string) => Effect.Effect<void, BrokerError.BrokerError>,
    then: () => void
  ): void => {
    const { queue } = item.message
    const done = (error: BrokerError.BrokerError | undefined) => (error === undefined ? then() : onOutcome(error))
    const others = declaring.get(route)
    if (others !== undefined) return void others.push(done)
    const waiting = [done]
    declaring.set(route, waiting)
    const end = (error: BrokerError.BrokerError | undefined): void => {
      declaring.delete(route)
      for (const each of waiting) each(error)
    }
    const declared = Effect.forEach(routes.needs(item), (objects) => one(objects, queue), { discard: true })
    fork(
      Effect.matchCause(declared, {
        onFailure: (cause) => end(undeclared(item, cause)),
        onSuccess: () => end(undefined)
      })
    )
  }

  /** Declares the objects of an unroutable item once more, because somebody has deleted them. */
  const redeclare = (sending: Sending, route: string): void => {
    const again: Declarer["renew"] = (objects, queue) => Effect.andThen(afterDeletion, declarer.renew(objects, queue))
    declare(sending, route, again, () => publish(sending, sending.onOutcome))
  }

  return (sending: Sending): void => {
    const { item } = sending
    const refused = routes.refusal(item)
    if (refused !== undefined) return sending.onOutcome(refused)
    const route = routes.name(item)
    const held = refusals.held(routes.parts(item))
    if (held !== undefined) return sending.onOutcome(held)
    const { onOutcome } = sending
    sending.onOutcome = (error) => {
      tell(item, error)
      onOutcome(error)
    }
    const first = () =>
      publish(sending, (error, isBystander) => {
        if (isBystander === true) {
          publish(sending, (second) => {
            tell(item, second)
            // The server may have stored what it has not confirmed.
            onOutcome(BrokerError.ofRepetition(error, second))
          })
        } else if (isNowhere(error)) redeclare(sending, route)
        else sending.onOutcome(error)
      })
    if (routes.needs(item).every(declarer.knows)) first()
    else declare(sending, route, declarer.ensure, first)
  }
}

/** A sender on a publisher. */
export const make = (env: Dependencies): Sender => {
  const { publisher, routes } = env
  const start = starter(env)

  /** Starts items when it runs. `known` answers what is known of each by now. */
  const sending = (items: ReadonlyArray<Item>, confirmed: (index: number) => void = () => {}) => {
    const started = env.elapsed()
    const outcomes: Array<BrokerError.BrokerError | undefined> = []
    const sendings = items.map(
      (item): Sending => ({
        item,
        started,
        onOutcome: () => {},
        submission: undefined,
        wasWritten: false,
        isWithdrawn: false
      })
    )
    const ended = Effect.callback<Outcomes>((resume) => {
      let open = items.length
      for (const [index, each] of sendings.entries()) {
        each.onOutcome = (error) => {
          outcomes[index] = error
          if (error === undefined) confirmed(index)
          if (--open === 0) resume(Effect.succeed(outcomes))
        }
      }
      sendings.forEach(start)
      return Effect.sync(() => {
        for (const each of sendings) {
          each.isWithdrawn = true
          if (each.submission !== undefined) publisher.withdraw(each.submission)
        }
      })
    })
    const known = (): Outcomes => sendings.map((each, index) => (index in outcomes ? outcomes[index] : givenUp(each)))
    return { ended, known }
  }

  return {
    sendEach: (items, confirmed) =>
      items.length === 0 ? Effect.succeed([]) : Effect.suspend(() => sending(items, confirmed).ended),
    send: (items) =>
      Effect.suspend(() => {
        for (const item of items) {
          const error = routes.refusal(item)
          if (error !== undefined) return Effect.fail(error)
        }
        if (items.length === 0) return Effect.void
        const { ended, known } = sending(items)
        const told = (outcomes: Outcomes) => {
          const failed = BrokerError.ofBatch(outcomes)
          return failed === undefined ? Effect.void : Effect.fail(failed)
        }
        return ended.pipe(
          Effect.flatMap(told),
          Effect.onInterrupt(() => told(known()))
        )
      })
  }
}
