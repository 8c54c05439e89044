/**
 * Acks in transactions. Until the broker has answered the settlement of such a message, this remembers how its run ended: only the
 * answer shows whether the transaction was committed, and so whether the run has failed.
 */
import * as Effect from "effect/Effect"
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import type { Failure } from "../../policy/Failure.ts"
import type { Decider } from "../../policy/Decider.ts"
import type * as BackoffState from "../../policy/BackoffState.ts"
import { isDoubtful, withoutTransactions, type BrokerError } from "../../port/BrokerError.ts"
import * as Direct from "../../runtime/Direct.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import { AlreadyDone, RolledBack } from "../Transaction.ts"
import type { Item, SubscriptionRef } from "./item.ts"

/** The end of a run whose transaction was rolled back. */
interface Outcome {
  readonly verdict: Acknowledgement.Verdict
  /** `undefined`: the handler has only requested a retry. */
  readonly failure: Failure | undefined
  /** Whether the failure is the handler's own. */
  readonly isThrown: boolean
  /** The signal for the consumer backoff. */
  readonly signal: BackoffState.Event
}

export interface Dependencies extends Pick<HandlerRuntime, "forkHere" | "readFailure"> {
  /** The broker's name. */
  readonly broker: string
  readonly queue: string
  readonly outlet: SubscriptionRef
  readonly decider: Pick<Decider, "failure">
  readonly signalOf: (item: Item, verdict: Acknowledgement.Verdict, failure: Failure | undefined) => BackoffState.Event
  /** Called before the ack, and when the adapter has refused it. */
  readonly onChange: (item: Item, tag: "Enlisted" | "Refused") => void
}

/** Acks messages in a transaction. Throws what fails at once. `onDone` is called before it fails with `AlreadyDone`. */
export type Enlist = (
  items: ReadonlyArray<Item>,
  transaction: unknown,
  call: AlreadyDone["call"],
  onDone: () => void
) => Promise<void>

export interface Transactions {
  readonly enlist: Enlist
  /** Remembers how the run of an enlisted message ended, and returns the outcome of a rollback. */
  readonly conclude: (item: Item, verdict: Acknowledgement.Verdict, thrown: Failure | undefined) => Outcome
  /** Removes and returns the outcome; `undefined` for a run that was interrupted. */
  readonly take: (item: Item) => Outcome | undefined
}

/** The verdict of a run that failed. */
const failed = Acknowledgement.finalise(undefined, "failure")

export const make = (dependencies: Dependencies): Transactions => {
  const { broker, decider, forkHere, onChange, outlet, queue, readFailure, signalOf } = dependencies
  const outcomes = new Map<Item, Outcome>()
  let rolledBack: Failure | undefined

  return {
    enlist: (items, transaction, call, onDone) => {
      const ackWithin = outlet.subscription?.ackWithin
      if (ackWithin === undefined) throw withoutTransactions(broker, queue)
      for (const item of items) onChange(item, "Enlisted")
      const refuse = (error: BrokerError): void => {
        if (!isDoubtful(error)) for (const item of items) onChange(item, "Refused")
      }
      const deliveries = items.map(({ delivery }) => delivery)
      const acked = Effect.suspend(() => ackWithin(transaction, deliveries)).pipe(
        Effect.tapError((error) => Effect.sync(() => refuse(error))),
        Effect.flatMap((done) => {
          if (done.length === 0) return Effect.void
          onDone()
          return Effect.fail(new AlreadyDone({ call, queue, ids: done.map(({ metadata }) => metadata.id) }))
        })
      )
      return Direct.toPromise(acked, forkHere)
    },
    conclude: (item, asked, thrown) => {
      const own = decider.failure(asked, thrown)
      const isRetry = asked._tag === "Retry"
      const verdict = isRetry ? asked : failed
      const failure = isRetry ? own : (own ?? (rolledBack ??= readFailure(new RolledBack())))
      const outcome = { verdict, failure, isThrown: own !== undefined, signal: signalOf(item, verdict, failure) }
      outcomes.set(item, outcome)
      return outcome
    },
    take: (item) => {
      const outcome = outcomes.get(item)
      outcomes.delete(item)
      return outcome
    }
  }
}
