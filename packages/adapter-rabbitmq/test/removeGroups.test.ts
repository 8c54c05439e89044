/** The order of the steps of a removal in virtual time: a publisher that never stops does not delay its end. */
import { assert, it } from "@effect/vitest"
import { VirtualTime } from "@requeue/conformance"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { removeGroups } from "../src/internal/clean/removeGroups.ts"
import type { QueueInfo } from "../src/internal/inspect/management.ts"

const stale: QueueInfo = {
  name: "stale",
  type: "classic",
  arguments: {},
  policy: undefined,
  messages: 0,
  unacknowledged: 0
}
const group = { claim: "nobody wants it", queues: [stale], exchanges: [], bindings: [] }
const holdingQueue = "holding"

it.live("what comes in meanwhile, without an end, does not keep stale queues from being looked at and removed", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const begun = now()
    const looks: Array<number> = []
    const removed: Array<string> = []
    const outcomes = yield* Effect.timeoutOption(
      removeGroups(
        {
          isStopped: () => false,
          holdingQueue,
          move: () => Effect.succeed([]),
          now,
          management: {
            queue: () => Effect.succeed(stale),
            queues: Effect.succeed([]),
            exchanges: Effect.succeed([]),
            bindings: Effect.succeed([])
          },
          server: {
            ask: () => Effect.die("nothing else is asked"),
            check: (queue) => Effect.succeed({ queue, messageCount: 0, consumerCount: 0 }),
            // As from a queue that is filled faster than it is emptied; one that is to be emptied once ends by itself.
            drain: (queue, _, isStopped) =>
              Effect.gen(function* () {
                if (queue === stale.name) looks.push(now() - begun)
                else while (isStopped?.() === false) yield* Effect.sleep(30)
                return 0
              }),
            deleteQueue: ({ name }) => Effect.sync(() => void removed.push(name)),
            bind: () => Effect.void,
            unbind: () => Effect.void,
            deleteExchange: () => Effect.void,
            restore: () => Effect.void
          }
        },
        [group]
      ),
      "1 minute"
    )
    assert.deepInclude(outcomes, { _tag: "Some", value: [{ group, moved: 0, why: undefined }] })
    assert.deepStrictEqual(removed, [stale.name])
    // A look every two seconds and a quarter, for fifteen.
    assert.isAtLeast(looks.length, 6)
    assert.isAtLeast(looks.at(-1)!, 12_000)
  }).pipe(VirtualTime.run)
)
