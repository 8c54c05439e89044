/** A queue that somebody deletes while a burst is sent to it. */
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { isAtLeast } from "../../src/internal/version.ts"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { on, outgoing, queueName, reasonOf } from "../world.ts"

const { url, version } = await shared()

const [rounds, messages] = [4, 2000]

// Up to 3.13 the server may answer nothing more on the connection of the burst.
test.runIf(isAtLeast(version, "4.0"))(
  "what a queue that was deleted has nacked is sent to the one that is there again",
  async () => {
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        for (let round = 0; round < rounds; round++) {
          const queue = queueName("burst")
          yield* broker.publish([outgoing(queue, "first")])
          const told: Array<unknown> = []
          const send = (index: number) =>
            Effect.match(broker.publish([outgoing(queue, `m${index}`)]), {
              onFailure: (error) => void told.push(reasonOf(error)),
              onSuccess: () => void told.push("ok")
            })
          const deletion = Effect.promise(() => raw(url, (channel) => channel.deleteQueue(queue)))
          yield* Effect.all(
            [
              Effect.forEach(
                Array.from({ length: messages }, (_, index) => index),
                send,
                { concurrency: "unbounded" }
              ),
              Effect.andThen(Effect.sleep(round * 15), deletion)
            ],
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual([...new Set(told)], ["ok"], `round ${round}`)
          assert.strictEqual(told.length, messages)
        }
      })
    )
  }
)
