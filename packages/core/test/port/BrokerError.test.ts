import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { EncodeError } from "../../src/message/EncodeError.ts"
import { ConfigurationError } from "../../src/options/ConfigurationError.ts"
import * as OptionNames from "../../src/options/OptionNames.ts"
import * as BrokerError from "../../src/port/BrokerError.ts"

const reasons = ["ConnectionLost", "Timeout", "Throttled", "QueueFull", "BodyTooLarge"] as const
const error = (reason: BrokerError.Reason, detail = "no") =>
  new BrokerError.BrokerError({ broker: "test", operation: "publish", queue: "q", reason, detail, remedy: "none" })

const outcome = fc.option(
  fc.constantFrom(...reasons).map((reason) => error(reason)),
  { nil: undefined }
)

describe("the error of a batch", () => {
  it("says of each message, in order, what became of it, and is the first one for the rest", () =>
    fc.assert(
      fc.property(fc.array(outcome, { minLength: 2, maxLength: 30 }), (outcomes) => {
        const batch = BrokerError.ofBatch(outcomes)
        const first = outcomes.find((each) => each !== undefined)
        if (batch === undefined || first === undefined) return assert.strictEqual(batch, first)
        assert.deepStrictEqual(
          [batch.reason, batch.message, batch.isRetryable],
          [first.reason, first.message, first.isRetryable]
        )
        const ids = outcomes.map((_, index) => `m${index}`)
        const entries = BrokerError.withIds(batch, ids).entries ?? []
        assert.deepStrictEqual(
          entries.map(({ id }) => id),
          ids
        )
        for (const [index, entry] of entries.entries()) {
          const told = outcomes[index]
          const isOpen = told?.reason === "ConnectionLost" || told?.reason === "Timeout"
          assert.strictEqual(entry.status, told === undefined ? "sent" : isOpen ? "unknown" : "failed")
          assert.strictEqual(entry.error, told)
        }
      })
    ))

  it.each([
    ["Timeout", "unknown"],
    ["Throttled", "failed"]
  ] as const)("of an adapter that tells of no entry, %s holds of all: %s", (reason, status) => {
    const { entries } = BrokerError.withIds(error(reason), ["a", "b"])
    assert.deepStrictEqual(
      entries?.map((entry) => [entry.id, entry.status]),
      [
        ["a", status],
        ["b", status]
      ]
    )
  })
})

describe("the error of what was tried again", () => {
  it("is the first where that may have been done, and is none where the second try is confirmed", () =>
    fc.assert(
      fc.property(outcome, outcome, (first, second) => {
        const told = BrokerError.ofRepetition(first, second)
        const isOpen = first !== undefined && BrokerError.isDoubtful(first)
        assert.strictEqual(told, second === undefined ? undefined : isOpen ? first : second)
      })
    ))
})

describe("the message of an error", () => {
  it("is one line, whatever the queue's name is, and shows plain names as they are", () => {
    const of = (queue: string) =>
      new BrokerError.BrokerError({ broker: "test", operation: "publish", queue, reason: "Timeout", detail: "no" })
        .message
    assert.strictEqual(of('or"ders'), 'test: publish on queue or"ders: Timeout: no')
    assert.strictEqual(of("a\nWARN b\u2028\u0085"), 'test: publish on queue "a\\nWARN b\\u2028\\u0085": Timeout: no')
    for (const name of ["a\nb", "a\r", "\u001b[2J"]) {
      const shown = [
        new ConfigurationError({ field: "f", detail: "d", remedy: "r", queue: name }),
        new EncodeError({ queue: name, field: "body", detail: "d", remedy: "r" }),
        OptionNames.error("send", name, "p")
      ]
      for (const { message } of shown) assert.notMatch(message, /\p{Cc}/u)
    }
  })
})
