/** The decision about a message: every row of the precedence table, through the broker. */
import { Backoff, BatchPolicy, type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("precedence")

/** The end of a message's first delivery: `acked`, or retried after this many units of delay. */
type Fate = "acked" | number

/** Delays, in units. The policy's delay differs from all that the calls set. */
const [short, middle, policy, long] = [1, 2, 3, 4]

interface Calls {
  readonly a: Handler.Received<unknown>
  readonly batch: Handler.Batch<unknown>
  /** Makes options with this many units of delay. */
  readonly after: (units: number) => { readonly delay: number }
}

const row = (
  name: string,
  calls: (calls: Calls) => void,
  outcome: "returns" | "throws",
  expected: { readonly a: Fate; readonly rest: Fate }
): Case.Case =>
  test(`${name}, handler ${outcome}`, function* (lab) {
    yield* lab.send("a", "b", "c")
    const retry = RetryPolicy.make({ backoff: Backoff.constant(policy * lab.unit) })
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 })
    yield* lab.startBatch({ retry, batch }, (given) => {
      if (given.messages.some(({ attempts }) => attempts > 1)) return
      calls({ a: given.messages.find(({ id }) => id === "a")!, batch: given, after: (n) => ({ delay: n * lab.unit }) })
      if (outcome === "throws") throw new Error("no")
    })
    yield* lab.untilRuns(3)
    Check.equal(
      "the messages of the first batch",
      lab.runs.map((run) => run.batch),
      [0, 0, 0]
    )
    const fates = (["a", "b", "c"] as const).map((id) => [id, id === "a" ? expected.a : expected.rest] as const)
    for (const [id, fate] of fates) yield* meets(lab, id, fate)
    yield* lab.quiet()
    const again = lab.arrivals().filter(({ delivery }) => delivery.attempts > 1)
    const ids = again.map(({ delivery }) => delivery.metadata.id).toSorted()
    const retried = fates.flatMap(([id, fate]) => (fate === "acked" ? [] : [id]))
    // A message whose lease has ended is redelivered as well, and before its time.
    if (!checkKept(lab, "redelivered", ids, retried, lab.runs[0]!.at)) return
    for (const [id, fate] of fates) {
      if (fate === "acked") continue
      const asked = lab.entriesOf("Settling").find(({ delivery }) => delivery.metadata.id === id)!
      const { at } = again.find(({ delivery }) => delivery.metadata.id === id)!
      lab.checkDelay(`the retry of ${id}`, fate * lab.unit, asked.at, at)
    }
  })

const meets = (lab: Lab, id: string, fate: Fate) =>
  Effect.gen(function* () {
    const first = () => lab.entriesOf("Settling").filter(({ delivery }) => delivery.metadata.id === id)
    yield* lab.until(`the settlement of ${id}`, () => first().length > 0)
    const { settlement } = first()[0]!
    if (fate === "acked") return Check.equal(`settlement of ${id}`, settlement._tag, "Ack")
    const delay = fate * lab.unit
    Check.equal(`settlement of ${id}`, [settlement._tag, "delay" in settlement && settlement.delay], ["Retry", delay])
    const isBack = () => lab.arrivals().some(({ delivery }) => delivery.metadata.id === id && delivery.attempts > 1)
    yield* lab.until(`the redelivery of ${id}`, isBack)
  })

const nothing = () => {}

const no = new Error("no")

export const cases: ReadonlyArray<Case.Case> = [
  row("no calls", nothing, "returns", { a: "acked", rest: "acked" }),
  row("no calls", nothing, "throws", { a: policy, rest: policy }),
  row("A.ack, A.retry", ({ a }) => (a.ack(), a.retry()), "returns", { a: "acked", rest: "acked" }),
  row("A.ack, A.retry", ({ a }) => (a.ack(), a.retry()), "throws", { a: "acked", rest: policy }),
  row(
    "A.retry(5), A.ack, A.retry(9)",
    ({ a, after }) => (a.retry(after(middle)), a.ack(), a.retry(after(long))),
    "returns",
    { a: middle, rest: "acked" }
  ),
  row("A.ack, retryAll(9)", ({ a, after, batch }) => (a.ack(), batch.retryAll(after(long))), "returns", {
    a: "acked",
    rest: long
  }),
  row("A.ack", ({ a }) => a.ack(), "throws", { a: "acked", rest: policy }),
  row("A.retry(5), ackAll", ({ a, after, batch }) => (a.retry(after(middle)), batch.ackAll()), "returns", {
    a: middle,
    rest: "acked"
  }),
  row("A.retry, retryAll(9)", ({ a, after, batch }) => (a.retry(), batch.retryAll(after(long))), "returns", {
    a: long,
    rest: long
  }),
  row(
    "A.retry(5), retryAll(9)",
    ({ a, after, batch }) => (a.retry(after(middle)), batch.retryAll(after(long))),
    "returns",
    { a: middle, rest: long }
  ),
  row("ackAll, A.retry(5)", ({ a, after, batch }) => (batch.ackAll(), a.retry(after(middle))), "returns", {
    a: "acked",
    rest: "acked"
  }),
  row("ackAll", ({ batch }) => batch.ackAll(), "throws", { a: "acked", rest: "acked" }),
  row("retryAll(9), A.ack", ({ a, after, batch }) => (batch.retryAll(after(long)), a.ack()), "returns", {
    a: long,
    rest: long
  }),
  row(
    "retryAll(9), A.retry(5)",
    ({ a, after, batch }) => (batch.retryAll(after(long)), a.retry(after(middle))),
    "returns",
    { a: middle, rest: long }
  ),
  row("ackAll, retryAll", ({ batch }) => (batch.ackAll(), batch.retryAll()), "returns", { a: "acked", rest: "acked" }),
  row("retryAll, ackAll", ({ batch }) => (batch.retryAll(), batch.ackAll()), "returns", { a: policy, rest: policy }),
  row(
    "retryAll(9), retryAll(3)",
    ({ after, batch }) => (batch.retryAll(after(long)), batch.retryAll(after(short))),
    "returns",
    { a: long, rest: long }
  ),
  row("A.retry, A.retry(5)", ({ a, after }) => (a.retry(), a.retry(after(middle))), "returns", {
    a: middle,
    rest: "acked"
  }),
  row("A.retry(5), A.retry(9)", ({ a, after }) => (a.retry(after(middle)), a.retry(after(long))), "throws", {
    a: middle,
    rest: policy
  }),
  row("A.fail", ({ a }) => a.fail(no), "returns", { a: policy, rest: "acked" }),
  row("A.fail", ({ a }) => a.fail(no), "throws", { a: policy, rest: policy }),
  row("A.fail, A.ack", ({ a }) => (a.fail(no), a.ack()), "returns", { a: policy, rest: "acked" }),
  row("A.ack, A.fail", ({ a }) => (a.ack(), a.fail(no)), "returns", { a: "acked", rest: "acked" }),
  row("A.fail, retryAll(9)", ({ a, after, batch }) => (a.fail(no), batch.retryAll(after(long))), "returns", {
    a: long,
    rest: long
  }),
  row(
    "A.fail(5), retryAll(9)",
    ({ a, after, batch }) => (a.fail(no, after(middle)), batch.retryAll(after(long))),
    "returns",
    { a: middle, rest: long }
  ),
  row(
    "retryAll(9), A.fail(5)",
    ({ a, after, batch }) => (batch.retryAll(after(long)), a.fail(no, after(middle))),
    "returns",
    {
      a: middle,
      rest: long
    }
  ),
  row("A.fail(5), A.retry(9)", ({ a, after }) => (a.fail(no, after(middle)), a.retry(after(long))), "returns", {
    a: middle,
    rest: "acked"
  }),
  row("A.retry, A.fail(5)", ({ a, after }) => (a.retry(), a.fail(no, after(middle))), "returns", {
    a: middle,
    rest: "acked"
  }),
  row("A.fail, ackAll", ({ a, batch }) => (a.fail(no), batch.ackAll()), "returns", { a: policy, rest: "acked" }),
  row("ackAll, A.fail", ({ a, batch }) => (batch.ackAll(), a.fail(no)), "returns", { a: "acked", rest: "acked" })
]
