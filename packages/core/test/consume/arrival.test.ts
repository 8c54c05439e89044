import { assert, describe, it } from "@effect/vitest"
import * as Delay from "../../src/message/Delay.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import * as Arrival from "../../src/consume/internal/arrival.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

const now = 50_000
const due = (notBefore: number) => ({ metadata: { ...Metadata.make("a", 0), notBefore } })
const tooMany = { name: "TooManyDeliveries", message: "delivered 15 times, 14 allowed" }

describe("refusal", () => {
  const rows: ReadonlyArray<readonly [string, Partial<Delivery>, Settlement.Settlement | undefined]> = [
    ["nothing that a handler may see", {}, undefined],
    ["what is not due", due(now + 5), Settlement.Release(5)],
    ["what is not due by a fraction", due(now + 0.2), Settlement.Release(1)],
    ["nothing that is due now", due(now), undefined],
    ["what is due in more than a day, for a day", due(now + Delay.max + 5), Settlement.Release(Delay.max)],
    ["nothing that claims to be due in years: no delay is that long", due(1e300), undefined],
    ["nothing beyond its attempts, which may never have come to a handler", { attempts: 5 }, undefined],
    ["nothing on its last delivery", { attempts: 14 }, undefined],
    [
      "what had one delivery too many",
      { attempts: 15 },
      Settlement.DeadLetter("too-many-deliveries", "work.dlq", tooMany)
    ],
    [
      "what its own metadata alone says was delivered too often",
      { attempts: 100, metadata: { ...Metadata.make("a", 0), attempts: 99 } },
      Settlement.DeadLetter("too-many-deliveries", "work.dlq", {
        name: "TooManyDeliveries",
        message: "delivered once, and its metadata counts 99 deliveries before; 14 allowed"
      })
    ],
    [
      "what the adapter could not read",
      { unreadable: { name: "TypeError", message: "no" } },
      Settlement.DeadLetter("undecodable", "work.dlq", { name: "TypeError", message: "no" })
    ],
    ["what had too many but is not due", { attempts: 15, ...due(now + 5) }, Settlement.Release(5)]
  ]
  it.each(rows)("%s", (_, more, expected) => {
    const admission = { retry: RetryPolicy.make(), queue: "work" }
    assert.deepStrictEqual(
      Arrival.refusal(delivery("a", more), admission, () => now),
      expected
    )
  })

  it("with maxDeliveries as maxAttempts, gives up what no handler may see again", () => {
    const retry = RetryPolicy.make({ maxAttempts: 1, maxDeliveries: 1 })
    const settlement = Arrival.refusal(delivery("a", { attempts: 2 }), { retry, queue: "work" }, () => now)
    assert.strictEqual(settlement?._tag, "DeadLetter")
  })
})
