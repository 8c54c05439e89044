/** Codecs that find headers in bodies, and codecs that cannot decode yet. */
import { Backoff, Codec, QueueDefinition, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"

const test = Case.inGroup("codecs")

/** Reads `{ tenant, text }`, and makes the tenant a header. */
const enveloped: Codec.Codec<unknown> = {
  ...Codec.json,
  decode: (bytes) => Codec.json.decode(bytes, {}).text,
  decodeMessage: (bytes, headers) => {
    const { tenant, text } = Codec.json.decode(bytes, headers)
    return { body: text, headers: { ...headers, "x-tenant": tenant } }
  }
}

const bytesOf = (json: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(json))

export const cases: ReadonlyArray<Case.Case> = [
  test("a handler sees the headers that a codec finds in the body, and copies keep those of the message", function* (lab) {
    const queue = QueueDefinition.make(lab.queue, { codec: enveloped })
    const producer = yield* lab.producer(queue)
    const sent = { tenant: "a", text: "hello" }
    yield* producer.send(sent, { headers: { "x-tenant": "outer", "x-other": "b" } })
    const seen: Array<unknown> = []
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    yield* lab.start(
      { retry },
      ({ body, headers }) => {
        seen.push([body, headers["x-tenant"], headers["x-other"]])
        return Effect.fail(new Error("boom"))
      },
      queue
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    const handled = ["hello", "a", "b"]
    Check.equal("attempts", seen, [handled, handled])
    Check.sameBytes("body", letter!.body, bytesOf(sent))
    Check.equal("header", letter!.headers["x-tenant"], "outer")
  }),
  test("a codec that cannot decode yet is called again, as the policy says", function* (lab) {
    let asked = 0
    const decode = async (bytes: Uint8Array): Promise<unknown> => {
      asked++
      if (asked === 1) throw Object.assign(new Error("the store does not answer"), { permanent: false })
      return Codec.json.decode(bytes, {})
    }
    const queue = QueueDefinition.make<unknown>(lab.queue, { codec: { ...Codec.json, decode } })
    yield* lab.send("a")
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    yield* lab.start({ retry }, () => {}, queue)
    const [run] = yield* lab.untilRuns(1)
    Check.equal("attempts", run!.attempts, 2)
    Check.equal("asked", asked, 2)
    yield* lab.untilEmpty
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  })
]
