/** Single decisions of core, repeated. A message here is one operation. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Acknowledgement } from "@requeue/core/port"
import type { Workload } from "../../Contender.ts"

interface Operations {
  readonly messages: number
  readonly warmUp: number
}

const over =
  (operation: (n: number) => number): Workload<Operations> =>
  async ({ messages, warmUp }, meter) => {
    let sum = 0
    for (let n = 0; n < warmUp; n++) sum += operation(n)
    meter.tick(warmUp)
    for (let n = 0; n < messages; n++) sum += operation(n)
    meter.tick(messages)
    // The optimiser removes results that are never read.
    if (!Number.isFinite(sum)) throw new Error(`an operation answered ${sum}`)
  }

/** The minimum: a call. */
export const call = over((n) => n & 1)

const policy = RetryPolicy.make({
  maxRetries: 5,
  backoff: Backoff.exponential("1 second", { max: "5 minutes", jitter: "full" })
})

/** A failed message's settlement, its backoff and jitter included. */
export const decision = over((n) => {
  const settlement = RetryPolicy.decide(policy, {
    queue: "work",
    attempts: 1 + (n % 5),
    age: 1000,
    delay: undefined,
    asked: false,
    failure: undefined,
    defaultDelay: undefined,
    random: (n % 1000) / 1000
  })
  return settlement._tag === "Retry" ? settlement.delay : 0
})

/** Ten verdicts after their handler has ended: one acked, one retried, the others by outcome. */
export const finalisation = over(() => {
  const verdicts = Array.from<Acknowledgement.Verdict | undefined>({ length: 10 })
  verdicts[3] = Acknowledgement.record(verdicts[3], { _tag: "Ack", index: 3 })
  verdicts[5] = Acknowledgement.record(verdicts[5], { _tag: "Retry", index: 5, delay: 1000 })
  return verdicts.map((verdict) => Acknowledgement.finalise(verdict, "success")).length
})
