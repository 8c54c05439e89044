/** Sizes that an nsqd refuses whose limits are not known: it tells them then, and closes the connection. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert, describe, test } from "vitest"
import type { NsqOptions } from "../../src/index.ts"
import * as Limits from "../../src/internal/limits.ts"
import { drainIds } from "../real/raw.ts"
import { server } from "./server.ts"
import { bytes, on, outgoing, queueName, until } from "../world.ts"

const small = await server({ flags: { "max-msg-size": 20_000, "max-body-size": 60_000 } })
const [traced] = small.wires
/** It is not asked for its limits. */
const unasked: NsqOptions.Options = { nsqd: small.wired.nsqd!, http: false }

const sized = (queue: string, id: string, size: number) => ({
  ...outgoing(queue, id),
  body: bytes(`"${id}"`.padStart(size, " "))
})

test.each<[text: string, limits: Limits.Configured]>([
  ["E_BAD_MESSAGE PUB message too big 30097 > 20000", { maxMsgSize: 20_000 }],
  ["E_BAD_MESSAGE DPUB message too big 30097 > 20000", { maxMsgSize: 20_000 }],
  ["E_BAD_MESSAGE MPUB message too big 30097 > 20000", { maxMsgSize: 20_000 }],
  ["E_BAD_BODY MPUB body too big 70000 > 60000", { maxBodySize: 60_000 }],
  ["E_BAD_BODY IDENTIFY body too big 70000 > 60000", {}],
  ["E_BAD_MESSAGE PUB invalid message body size 0", {}]
])("%s tells %j", (text, limits) => assert.deepStrictEqual(Limits.refused(text), limits))

describe("of an nsqd whose limits are not known", () => {
  test.each([
    [30_000, ["BodyTooLarge"]],
    // The answer to these may be lost: nsqd closes the connection while they are being written.
    [900_000, ["BodyTooLarge", "ConnectionLost"]]
  ])("ten messages of %i bytes are refused among 600, and no neighbour is lost or stored twice", async (size, told) => {
    const queue = queueName("ten")
    await on(small.direct, (broker) => broker.publish([sized(queue, "first", 8)]))
    const isLarge = (index: number) => index % 60 === 30
    const messages = Array.from({ length: 600 }, (_, index) => sized(queue, `m${index}`, isLarge(index) ? size : 8))
    const results = await on({ ...small.direct, http: false }, (broker) =>
      Effect.andThen(
        broker.publish([sized(queue, "second", 8)]),
        Effect.forEach(messages, (message) => Effect.result(broker.publish([message])), { concurrency: "unbounded" })
      )
    )
    for (const [index, result] of results.entries()) {
      const outcome = Result.isSuccess(result) ? "sent" : result.failure.reason
      assert.include(isLarge(index) ? told : ["sent"], outcome)
    }
    const neighbours = messages.filter((_, index) => !isLarge(index)).map(({ metadata: { id } }) => id)
    const ids = await drainIds(small.http, queue, "work")
    assert.deepStrictEqual(ids.toSorted(), ["first", "second", ...neighbours].toSorted())
  })

  test("what it has refused is not written to it again, until its connection is lost otherwise", async () => {
    const queue = queueName("learned")
    const written = () =>
      traced.sent("PUB", "MPUB").filter(({ args, body }) => args[0] === queue && body!.length > 20_000).length
    await on(unasked, (broker) =>
      Effect.gen(function* () {
        const refused = Effect.map(
          Effect.flip(broker.publish([sized(queue, "large", 30_000)])),
          ({ reason }) => [reason, written()] as const
        )
        assert.deepStrictEqual(yield* refused, ["BodyTooLarge", 1])
        yield* broker.publish([sized(queue, "small", 8)])
        assert.deepStrictEqual(yield* refused, ["BodyTooLarge", 1])
        // An nsqd that is started again may have another limit.
        traced.cut()
        yield* until("the loss", () => broker.connection().state === "down")
        yield* until("a new connection", () => broker.connection().state === "up")
        assert.deepStrictEqual(yield* refused, ["BodyTooLarge", 2])
      })
    )
  })
})
