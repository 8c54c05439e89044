/** Links to traces. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Effect from "effect/Effect"
import { Console, Redaction } from "../src/index.ts"
import * as World from "./world.ts"

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
const traceUrl = "https://traces.example.com/trace/{traceId}?span={spanId}"

const letterWith = (headers: Readonly<Record<string, string>>, options: Partial<Console.Options> = { traceUrl }) =>
  Effect.gen(function* () {
    const { get, publish, settled } = yield* World.make(options)
    yield* publish({ id: "order-1", headers })
    const cause = yield* get(World.linkTo(yield* settled(World.deadLetters), "/group"))
    return World.decoded((yield* get(World.linkTo(cause, "/letter"))).text)
  })

describe("a trace", () => {
  it.effect("is linked from its letter", () =>
    Effect.gen(function* () {
      const href = "https://traces.example.com/trace/4bf92f3577b34da6a3ce929d0e0e4736?span=00f067aa0ba902b7"
      for (const name of ["traceparent", "Traceparent"]) {
        assert.include(yield* letterWith({ [name]: traceparent }), `<a href="${href}" target="_blank" rel="noopener`)
      }
    })
  )

  it.effect("is not linked from letters without one, or with one that is none, or where it is hidden", () =>
    Effect.gen(function* () {
      const wrong = [
        "",
        "x",
        traceparent.toUpperCase(),
        `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
        `00-"><script>-0-01`
      ]
      for (const value of wrong)
        assert.notInclude(yield* letterWith({ traceparent: value }), "traces.example.com", value)
      assert.notInclude(yield* letterWith({ traceparent }, {}), "traces.example.com")
      const redact: Redaction.Redact = (content) => ({ ...content, headers: {} })
      assert.notInclude(yield* letterWith({ traceparent }, { traceUrl, redact }), "traces.example.com")
    })
  )

  it("has an address of HTTP, or the console does not start", () => {
    const source = { name: "local", queues: World.queues, layer: MemoryBroker.layer(), secrets: [] }
    const wrong = [
      "javascript:alert('{traceId}')",
      "https://traces.example.com/",
      "https://{traceId}.example.com/",
      "https://ann:secret@traces.example.com/{traceId}",
      "/trace/{traceId}",
      "https://traces.example.com/{traceId}/{tenant}",
      "data:text/html,{traceId}"
    ]
    for (const template of wrong) {
      assert.throws(
        () => Console.make({ brokers: [source], audit: () => {}, traceUrl: template }),
        /Console\.make: traceUrl must be a URL by http or https with \{traceId\}/,
        template
      )
    }
  })
})
