/**
 * A type test: the unions that users and adapters take apart, member by member. A member more or less is a breaking change.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import { Backoff, BrokerError, Classifier, Jitter, RetryPolicy } from "@requeue/core"
import type { BackoffState } from "@requeue/core/port"
import { Acknowledgement, Metadata, Settlement } from "@requeue/core/port"
import { describe, type Event } from "@requeue/core/promise"
import { expectTypeOf } from "vitest"

/** As an adapter does it: without a default, and without a member that is forgotten. */
export const settle = (settlement: Settlement.Settlement): ReadonlyArray<unknown> => {
  switch (settlement._tag) {
    case "Ack":
      return []
    case "Retry":
      expectTypeOf(settlement.error).toEqualTypeOf<Metadata.ErrorSummary | undefined>()
      return [settlement.delay]
    case "DeadLetter":
      expectTypeOf(settlement.error).toEqualTypeOf<Metadata.ErrorSummary>()
      return [settlement.queue, settlement.reason]
    case "Drop":
      expectTypeOf(settlement.reason).toEqualTypeOf<Metadata.Reason | "dropped">()
      return [settlement.reason]
    case "Release":
      return [settlement.delay]
    default:
      return settlement satisfies never
  }
}

/** As something that draws a backoff does it. */
export const draw = ({ curve }: Backoff.Backoff): ReadonlyArray<number> => {
  switch (curve._tag) {
    case "Constant":
      return [curve.delay]
    case "Linear":
      return [curve.step]
    case "Exponential":
      return [curve.base, curve.factor]
    case "Sequence":
      return curve.delays
    case "Switch":
      return [curve.after, ...draw(curve.first), ...draw(curve.next)]
    default:
      return curve satisfies never
  }
}

expectTypeOf<Event["_tag"]>().toEqualTypeOf<
  | "Received"
  | "AttemptFailed"
  | "Succeeded"
  | "RetryScheduled"
  | "DeadLettered"
  | "Dropped"
  | "Released"
  | "SettleFailed"
  | "Quarantined"
  | "LeaseLost"
  | "CallIgnored"
  | "BackoffEntered"
  | "BackoffLeft"
>()
expectTypeOf<Extract<Event, { _tag: "SettleFailed" }>["settlement"]>().toEqualTypeOf<Settlement.Settlement["_tag"]>()
expectTypeOf<Extract<Event, { _tag: "DeadLettered" }>["reason"]>().toEqualTypeOf<Metadata.Reason>()

expectTypeOf<Metadata.Reason>().toEqualTypeOf<
  "retries-exhausted" | "permanent" | "undecodable" | "too-old" | "too-many-deliveries"
>()
expectTypeOf<Classifier.Classification>().toEqualTypeOf<"retry" | "retry-uncounted" | "dead-letter" | "drop">()
expectTypeOf<Acknowledgement.Verdict["_tag"]>().toEqualTypeOf<"Ack" | "Retry">()
expectTypeOf<Jitter.Jitter>().toEqualTypeOf<
  "none" | "full" | "equal" | "decorrelated" | { readonly proportional: number }
>()
expectTypeOf<BackoffState.Mode["_tag"]>().toEqualTypeOf<"Running" | "Paused" | "Probing">()
expectTypeOf<BrokerError.Reason>().toEqualTypeOf<
  | "ConnectionFailed"
  | "ConnectionLost"
  | "Timeout"
  | "Throttled"
  | "QueueFull"
  | "LeaseLost"
  | "AccessRefused"
  | "QueueMissing"
  | "QueueMismatch"
  | "Unroutable"
  | "BodyTooLarge"
  | "Unsupported"
>()

// Made by us or by hand, a settlement is the same to whoever takes it apart.
expectTypeOf(Settlement.Ack).toEqualTypeOf<Settlement.Settlement>()
expectTypeOf(Settlement.Retry).returns.toEqualTypeOf<Settlement.Settlement>()

expectTypeOf(describe({})).toEqualTypeOf<RetryPolicy.Description>()
expectTypeOf<RetryPolicy.Description>().toEqualTypeOf<{
  readonly schedule: ReadonlyArray<{
    readonly attempt: number
    readonly delay: readonly [number, number]
    readonly elapsed: readonly [number, number]
  }>
  readonly handlerRuns: number
  readonly worstCase: number
  readonly text: string
}>()

export const refused = [
  // @ts-expect-error a dead letter goes somewhere
  (): Settlement.Settlement => ({ _tag: "DeadLetter", reason: "permanent", error: { name: "E", message: "" } }),
  // @ts-expect-error dropped is no reason of a dead letter
  () => Settlement.DeadLetter("dropped", "orders.dlq", { name: "E", message: "" }),
  // @ts-expect-error a release has no error
  () => Settlement.Release("1 second"),
  // @ts-expect-error what a policy amounts to is read-only
  () => (describe({}).text = "")
]
