/** What editors say about a file, by the published JSON Schema. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, describe, expect, it } from "vitest"
import { defineConfig, jsonSchema } from "../src/index.ts"

const validate = new Ajv2020({ strict: false }).compile(jsonSchema())

const sound = defineConfig({
  $schema: "./node_modules/@requeue/config/schema.json",
  broker: "local",
  brokers: {
    local: "memory:",
    live: { url: "amqp://${HOST}", queueType: "quorum", names: { retryQueue: "{queue}.r" } }
  },
  policies: {
    patient: {
      maxRetries: "unlimited",
      maxAge: "1 day",
      backoff: {
        type: "switch",
        after: 3,
        first: { type: "constant", delay: 500 },
        next: { type: "exponential", base: "1 second", jitter: { proportional: 0.1 } }
      },
      deadLetter: { routes: { undecodable: "broken" } }
    }
  },
  queues: {
    orders: { retry: "patient", batch: { maxBatchSize: 20 }, consumerBackoff: true, codec: "text", delay: 5 },
    other: { retry: { preset: "nsqRequeue" }, consumerBackoff: { form: "ratio", strategy: "full-jitter" } }
  }
})

describe("schema.json", () => {
  it("is what decoding takes; vitest -u writes it", async () => {
    await expect(`${JSON.stringify(jsonSchema(), null, 2)}\n`).toMatchFileSnapshot("../schema.json")
  })

  it("takes a sound file", () => {
    assert.isTrue(validate(sound), JSON.stringify(validate.errors))
  })

  it.each<readonly [string, unknown]>([
    ["no brokers", {}],
    ["an unknown key", { ...sound, queue: {} }],
    ["an unknown key of a queue", { ...sound, queues: { orders: { retries: 5 } } }],
    ["an unknown key of a policy", { ...sound, policies: { patient: { maxRetires: 5 } } }],
    ["an unknown backoff", { ...sound, policies: { patient: { backoff: { type: "quadratic" } } } }],
    ["an unknown codec", { ...sound, queues: { orders: { codec: "xml" } } }],
    ["a broker without a URL", { ...sound, brokers: { local: { queueType: "quorum" } } }],
    ["a queue that is text", { ...sound, queues: { orders: "patient" } }]
  ])("refuses %s", (_, file) => {
    assert.isFalse(validate(file))
  })

  it("tells what keys are for", () => {
    const text = JSON.stringify(jsonSchema())
    for (const words of ["Retry policies by name", "The queue's name on the broker"]) assert.include(text, words)
  })
})
