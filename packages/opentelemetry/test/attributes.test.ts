/** Attributes that come from the broker's own facts. */
import { Metadata, Outgoing } from "@requeue/core/port"
import { assert, describe, test } from "vitest"
import * as Attributes from "../src/internal/attributes.ts"

const body = new Uint8Array()
const facts = { routingKey: "order.paid", correlationId: "c1", exchange: "events" }
const named = {
  "messaging.rabbitmq.destination.routing_key": "order.paid",
  "messaging.message.conversation_id": "c1"
}

const outgoing = (native?: Readonly<Record<string, unknown>>) =>
  Attributes.outgoing(Outgoing.make({ queue: "orders", id: "m1", body, headers: {}, delay: 0, native }, 0))

const delivery = (native?: Readonly<Record<string, unknown>>) =>
  Attributes.delivery({ body, headers: {}, attempts: 1, metadata: Metadata.make("m1", 0), receipt: undefined, native })

describe("the facts of RabbitMQ", () => {
  test("that have a name in the conventions are attributes, of a send and of a delivery", () => {
    assert.deepInclude(outgoing({ rabbitmq: facts }), named)
    assert.deepInclude(delivery({ rabbitmq: facts }), named)
  })

  test.each([
    [undefined],
    [{}],
    [{ sqs: facts }],
    [{ rabbitmq: null }],
    [{ rabbitmq: "events" }],
    [{ rabbitmq: { routingKey: 7, correlationId: "" } }]
  ])("%j tells nothing", (native) => {
    for (const attributes of [outgoing(native), delivery(native)])
      assert.doesNotHaveAnyKeys(attributes, Object.keys(named))
  })
})
