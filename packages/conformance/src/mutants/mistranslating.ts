/** Brokers that carry out another settlement than the requested one. */
import { Settlement } from "@requeue/core/port"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

type Tag = Settlement.Settlement["_tag"]

const hasTag =
  <T extends Tag>(tag: T) =>
  (settlement: Settlement.Settlement): settlement is Extract<Settlement.Settlement, { _tag: T }> =>
    settlement._tag === tag

/** Replaces every settlement of one kind. */
const instead = <T extends Tag>(
  name: string,
  kills: string,
  tag: T,
  other: (settlement: Extract<Settlement.Settlement, { _tag: T }>) => Settlement.Settlement
): Mutant => ({
  name,
  kills,
  broker: (broker) =>
    decorate(broker, {
      settle: ({ delivery, settlement }) =>
        hasTag(tag)(settlement) ? { delivery, settlement: other(settlement) } : undefined
    })
})

export const mutants: ReadonlyArray<Mutant> = [
  instead("acks dead letters", "maxRetries 0: one delivery, then the dead letters", "DeadLetter", () => Settlement.Ack),
  instead(
    "sends dead letters to another queue",
    "a dead letter has origin, id, attempts, times, reason and error",
    "DeadLetter",
    (letter) => ({ ...letter, queue: `${letter.queue}.lost` })
  ),
  instead("mixes up the reasons", "a permanent error is dead-lettered at once", "DeadLetter", (letter) => ({
    ...letter,
    reason: "retries-exhausted"
  })),
  instead(
    "loses the error",
    "a dead letter has origin, id, attempts, times, reason and error",
    "DeadLetter",
    (letter) => ({
      ...letter,
      error: { name: "", message: "" }
    })
  ),
  instead("ignores the delay of a retry", "a backoff grows with the message's attempts", "Retry", (retry) => ({
    ...retry,
    delay: 0
  })),
  instead("retries too early", "retries with shorter delays overtake those with longer ones", "Retry", (retry) => ({
    ...retry,
    delay: retry.delay * 0.9
  })),
  instead("retries too late", "retryAfter may be a date", "Retry", (retry) => ({
    ...retry,
    delay: retry.delay + 2000
  })),
  instead("does not count retries", "delayed retries count as well", "Retry", ({ delay }) => Settlement.Release(delay)),
  instead("loses retries", "a single message: retry, then success, is retried", "Retry", () => Settlement.Ack),
  instead(
    "delivers acked messages again",
    "a message is delivered once, with its body, id and first attempt",
    "Ack",
    () => Settlement.Retry(0)
  ),
  instead("counts releases", "what is given back has used up no attempt", "Release", ({ delay }) =>
    Settlement.Retry(delay)
  ),
  instead(
    "loses what is given back",
    "a handler beyond the deadline is interrupted, and its message comes back",
    "Release",
    () => Settlement.Ack
  ),
  instead(
    "loses what a paused consumer gives back",
    "a consumer that is paused before a drain returns waiting messages, and ends",
    "Release",
    () => Settlement.Ack
  ),
  instead("keeps what is dropped", "a drop error removes the message and leaves no dead letter", "Drop", () =>
    Settlement.Retry(0)
  ),
  instead(
    "cuts all at once",
    "a dead letter that is accepted only without error-text records that, and keeps its body and headers",
    "DeadLetter",
    (letter) => (letter.cut === undefined ? letter : { ...letter, cut: "all" })
  )
]
