import { assert, describe, it } from "@effect/vitest"
import * as Delay from "../../src/message/Delay.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import * as Admission from "../../src/consume/internal/admission.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

const now = 50_000
const due = (notBefore: number) => ({ metadata: { ...Metadata.make("a", 0), notBefore } })
const tooMany = { name: "AttemptsExceeded", message: "delivered 5 times, 4 allowed" }

describe("refusal", () => {
  const rows: ReadonlyArray<readonly [string, Partial<Delivery>, boolean, Settlement.Settlement | undefined]> = [
    ["nothing that a handler may see", {}, false, undefined],
    ["what this process has handled already", {}, true, Settlement.Ack],
    ["what is not due", due(now + 5), false, Settlement.Release(5)],
    ["what is not due by a fraction", due(now + 0.2), false, Settlement.Release(1)],
    ["nothing that is due now", due(now), false, undefined],
    ["what is due in more than a day, for a day", due(now + Delay.max + 5), false, Settlement.Release(Delay.max)],
    ["nothing that claims to be due in years: no delay is that long", due(1e300), false, undefined],
    ["nothing on its last attempt", { attempts: 4 }, false, undefined],
    [
      "what had one attempt too many",
      { attempts: 5 },
      false,
      Settlement.DeadLetter("retries-exhausted", "work.dlq", tooMany)
    ],
    ["what had too many but is not due", { attempts: 5, ...due(now + 5) }, false, Settlement.Release(5)]
  ]
  it.each(rows)("%s", (_, more, acked, expected) => {
    const context = { policy: RetryPolicy.make(), queue: "work", acked, now }
    assert.deepStrictEqual(Admission.refusal(delivery("a", more), context), expected)
  })
})

describe("undecodable", () => {
  it("goes where the policy says", () => {
    const error = { name: "Error", message: "boom" }
    const settlement = (options: RetryPolicy.Options) =>
      Admission.undecodable(RetryPolicy.make(options), "work", new Error("boom"))
    assert.deepStrictEqual(settlement({}), Settlement.DeadLetter("undecodable", "work.dlq", error))
    const routed = { deadLetter: { routes: { undecodable: "odd" }, redact: () => ({ name: "E", message: "***" }) } }
    assert.deepStrictEqual(
      settlement(routed),
      Settlement.DeadLetter("undecodable", "odd", { name: "E", message: "***" })
    )
    assert.deepStrictEqual(settlement({ deadLetter: "discard" }), Settlement.Drop("undecodable", error))
  })
})
