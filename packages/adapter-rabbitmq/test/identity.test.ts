import { assert, describe, it } from "@effect/vitest"
import { Metadata } from "@requeue/core/port"
import type { Incoming, Properties } from "../src/internal/client.ts"
import { identify } from "../src/internal/consume/identity.ts"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import { direct, toPublication } from "../src/internal/publish/toPublication.ts"
import * as Frames from "./frames.ts"
import { bytes } from "./world.ts"

/** Properties as they come from the server: the headers also in its encoding. */
const read = ({ headers = {}, ...properties }: Properties): Properties => {
  const entries = Object.entries(headers).map(([name, one]) =>
    Frames.entry(name, Frames.value("S", Frames.long(typeof one === "string" ? one : JSON.stringify(one))))
  )
  return { ...properties, headers, table: Frames.join(...entries) }
}

const now = Date.UTC(2030, 0, 1)
const requeue = Metadata.encode(Metadata.make("m1", now))
const headers = { "x-tenant": "a", n: 5, requeue, "requeue-copy": "c1" }
const properties: Properties = { messageId: "m1", timestamp: now / 1000, contentType: "text/plain", headers }

const name = (change: Properties = {}, body = "body") => identify(bytes(body), read({ ...properties, ...change }))

describe("the name of a copy", () => {
  it("is the same at each delivery, whatever the server counts and records", () => {
    const counted = { ...headers, "x-delivery-count": 3, "x-acquired-count": 4, "x-death": [{ queue: "q" }] }
    assert.isString(name())
    assert.strictEqual(name({ headers: counted }), name())
  })

  it.each<[string, Properties, string?]>([
    ["another copy", { headers: { ...headers, "requeue-copy": "c2" } }],
    // A foreign service that forwards messages with the headers that it received.
    ["another body", {}, "other"],
    ["another header", { headers: { ...headers, "x-tenant": "b" } }],
    ["one header more", { headers: { ...headers, more: "b" } }],
    ["another id", { messageId: "m2" }],
    ["another correlation", { correlationId: "c" }]
  ])("is another for %s", (_, change, body) => assert.notStrictEqual(name(change, body), name()))

  it("is none for a foreign message", () => {
    assert.isUndefined(name({ headers: { "x-tenant": "a" } }))
    assert.isUndefined(name({ headers: { "requeue-copy": 5 } }))
    assert.isUndefined(identify(bytes(""), {}))
  })

  it("stays that of a message whose place another takes", () => {
    const message: Incoming = {
      content: Buffer.from("body"),
      fields: { deliveryTag: 1, exchange: "", routingKey: "q", redelivered: true },
      properties: read({ ...properties, headers: { ...headers, "x-delivery-count": 8 } })
    }
    const source = { type: "quorum", serverVersion: "4.2.0", keepsNotBefore: false, now: () => now } as const
    const delivery = toDelivery(message, source)
    const copy = toPublication(
      { queue: "q", body: delivery.body, headers: delivery.headers, delay: 0, metadata: delivery.metadata },
      direct("q"),
      { copy: "c1", isDelay: () => false, returns: delivery.returns },
      message.properties
    )
    const written = { ...headers, ...copy.headers }
    const receive = (change: Readonly<Record<string, unknown>> = {}): Incoming => ({
      content: Buffer.from(copy.content),
      fields: { deliveryTag: 2, exchange: "", routingKey: "q", redelivered: false },
      properties: read({ ...copy.options, headers: { ...written, ...change } })
    })
    const received = receive()
    const replaced = toDelivery(received, source)
    assert.deepStrictEqual([delivery.attempts, replaced.attempts, replaced.returns], [9, 9, 0])
    // The core looks for the name of what was delivered before.
    assert.deepStrictEqual([delivery.redelivered, replaced.redelivered], [true, true])
    assert.deepStrictEqual(replaced.metadata, delivery.metadata)
    assert.strictEqual(identify(received.content, received.properties), name())
    // A service that repeats the count on another message.
    for (const change of [{ "x-tenant": "b" }, { "requeue-copy": "c2" }])
      assert.isUndefined(toDelivery(receive(change), source).formerReturns)
  })
})
