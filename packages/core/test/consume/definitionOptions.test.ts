/** The options of a queue's definition, such as those of a config file. */
import { assert, it } from "@effect/vitest"
import * as ConsumerOptions from "../../src/consume/ConsumerOptions.ts"
import * as Puller from "../../src/consume/Puller.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"

const queue = {
  ...QueueDefinition.make("w"),
  options: { concurrency: 8, retryDelay: 1000, prefetch: undefined, unknown: 1 }
}

it.each([
  [queue, {}, { concurrency: 8, retryDelay: 1000, prefetch: undefined }],
  [queue, { concurrency: 2, retryDelay: undefined }, { concurrency: 2, retryDelay: 1000, prefetch: undefined }],
  [queue, { prefetch: 0 }, { concurrency: 8, retryDelay: 1000, prefetch: 0 }],
  [QueueDefinition.make("w"), { concurrency: 2 }, { concurrency: 2 }],
  ["w", { concurrency: 2 }, { concurrency: 2 }],
  [undefined, {}, {}]
])("apply where the call leaves them out: %j, %j", (definition, options, expected) => {
  assert.deepStrictEqual(ConsumerOptions.over(definition, options, ConsumerOptions.kinds), expected)
})

it("apply to pullers as far as pullers have them", () => {
  assert.deepStrictEqual(ConsumerOptions.over(queue, {}, Puller.kinds), { retryDelay: 1000 })
})

it("are not applied twice", () => {
  assert.deepStrictEqual(ConsumerOptions.over(ConsumerOptions.bare(queue), {}, ConsumerOptions.kinds), {})
  assert.strictEqual(ConsumerOptions.bare("w"), "w")
})
