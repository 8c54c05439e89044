import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { BrokerError, type Reason } from "../../src/port/BrokerError.ts"
import * as Trouble from "../../src/port/Trouble.ts"

const error = (reason: Reason, detail: string) =>
  new BrokerError({ broker: "scripted", operation: "consume", queue: "q", reason, detail })

it.effect(
  "a trouble begins once, has the last reason, and is logged when the reason is another one, and at its end",
  () => {
    const logged: Array<string> = []
    const logs = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
    let time = 5
    const { current, over, tell } = Trouble.track("q", () => time)
    return Effect.gen(function* () {
      yield* over
      assert.deepStrictEqual([current(), logged], [undefined, []])
      const [first, again, other] = [
        error("AccessRefused", "a"),
        error("AccessRefused", "b"),
        error("QueueMissing", "c")
      ]
      yield* tell(first)
      time = 9
      yield* tell(again)
      assert.deepStrictEqual(current(), { since: 5, error: again })
      yield* tell(other)
      assert.deepStrictEqual(current(), { since: 5, error: other })
      yield* over
      yield* over
      assert.strictEqual(current(), undefined)
      yield* tell(first)
      assert.deepStrictEqual(current(), { since: 9, error: first })
      const texts = ["not consuming", "not consuming", "consuming again", "not consuming"]
      assert.deepStrictEqual(logged, texts)
    }).pipe(Effect.provide(logs))
  }
)
