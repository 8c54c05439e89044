import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core/BrokerError"
import * as Outgoing from "@requeue/core/Outgoing"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Declarer } from "../src/internal/declarer.ts"
import type { Publisher } from "../src/internal/publisher.ts"
import * as Sender from "../src/internal/sender.ts"
import * as Plan from "../src/RabbitMqPlan.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"
import { bytes } from "./world.ts"

const settings = () => Result.getOrThrow(RabbitMqOptions.decode())

const refused = (queue: string, reason: "AccessRefused" | "QueueFull" | "Timeout") =>
  new BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason, detail: "no" })

const item = (queue: string): Sender.Item => {
  const plan = Plan.make({ queue }, settings(), "4.3.6")
  if (plan instanceof Error) throw plan
  return {
    message: Outgoing.make({ queue, id: queue, body: bytes("x"), headers: {}, delay: 0 }, 0),
    plan,
    original: {}
  }
}

/** Declares all but `locked`; what is sent to `full` is refused; a send with `stuck` fails after what is before it. */
const start = () => {
  const declared = new Set<unknown>()
  const publisher: Publisher = {
    send: (publications, confirmed) =>
      Effect.suspend(() => {
        const stuck = publications.findIndex(({ queue }) => queue === "stuck")
        const answers = publications.map(({ queue }, index) => {
          const error = queue === "full" ? refused(queue, "QueueFull") : undefined
          if (error === undefined && (stuck === -1 || index < stuck)) confirmed?.(index)
          return error
        })
        return stuck === -1 ? Effect.succeed(answers) : Effect.fail(refused("stuck", "Timeout"))
      })
  }
  const declarer: Pick<Declarer, "knows" | "ensure" | "doubt"> = {
    knows: (objects) => declared.has(objects),
    ensure: (objects, queue) =>
      queue === "locked" ? Effect.fail(refused(queue, "AccessRefused")) : Effect.sync(() => void declared.add(objects)),
    doubt: (objects) => void declared.delete(objects)
  }
  return Sender.make({
    settings: settings(),
    declarer: declarer as Declarer,
    publisher,
    maxBodySize: 100,
    uniqueName: () => "copy",
    elapsed: () => 0
  })
}

const sendEach = Effect.fnUntraced(function* (sender: Sender.Sender, queues: ReadonlyArray<string>) {
  const confirmed: Array<string> = []
  const answers = yield* sender.sendEach(queues.map(item), (index) => confirmed.push(queues[index]!))
  return { confirmed: confirmed.toSorted(), answers: answers.map((error) => error?.reason) }
})

describe("what is sent each on its own account", () => {
  it.effect("fails alone when its queue cannot be declared, or does not take it", () =>
    Effect.gen(function* () {
      const sender = start()
      for (let round = 0; round < 2; round++) {
        const { answers, confirmed } = yield* sendEach(sender, ["a", "locked", "full", "b"])
        assert.deepStrictEqual(answers, [undefined, "AccessRefused", "QueueFull", undefined])
        assert.deepStrictEqual(confirmed, ["a", "b"])
      }
    })
  )

  it.effect("is well when it was confirmed before the others failed", () =>
    Effect.gen(function* () {
      const sender = start()
      yield* sendEach(sender, ["a", "b"])
      yield* sendEach(sender, ["stuck"])
      const { answers, confirmed } = yield* sendEach(sender, ["a", "stuck", "b"])
      assert.deepStrictEqual(answers, [undefined, "Timeout", "Timeout"])
      assert.deepStrictEqual(confirmed, ["a"])
    })
  )
})
