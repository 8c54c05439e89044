/** Pages while a broker is away: what the console knows of it stays in sight. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Authorization, Console } from "../src/index.ts"
import * as World from "./world.ts"

const made = Effect.gen(function* () {
  const own = yield* MemoryBroker.make()
  yield* World.queueOfLetters(own)
  let isAway = false
  const gone = new BrokerError.BrokerError({
    broker: "memory",
    operation: "count",
    reason: "ConnectionLost",
    detail: "the connection was refused",
    remedy: "Try again"
  })
  const counts: Broker.Admin["counts"] = (queue) =>
    Effect.suspend(() => (isAway ? Effect.fail(gone) : own.admin.counts(queue)))
  const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, counts } })
  const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
  const authorize = Authorization.everybody("ann", "redrive")
  const world = World.browser(yield* Console.make({ brokers, audit: () => {}, authorize }))
  yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
  return { ...world, leave: () => void (isAway = true) }
})

describe("a broker that is away", () => {
  it.effect("hides nothing of the last look, and is told beside it", () =>
    Effect.gen(function* () {
      const { get, leave, settled } = yield* made
      const causes = yield* settled(World.deadLetters)
      leave()
      const page = yield* get(World.deadLetters)
      assert.strictEqual(page.status, 200)
      assert.match(page.text, /<b>local does not answer\.<\/b>.*the connection was refused/)
      assert.include(page.text, "letters unknown")
      assert.include(page.text, "Browsed all 1 letter")
      assert.notInclude(page.text, "cannot count")
      const cause = yield* get(World.linkTo(causes, "/group"))
      assert.include(cause.text, "order-1")
      assert.strictEqual((yield* get(World.linkTo(cause, "/letter"))).status, 200)
    })
  )

  it.effect("is told where nobody has browsed, and a refusal names the operator", () =>
    Effect.gen(function* () {
      const { get, leave } = yield* made
      leave()
      const page = yield* get(World.deadLetters)
      assert.match(page.text, /<b>local does not answer\.<\/b>.*the connection was refused/)
      const refused = yield* get("/job?id=none")
      assert.strictEqual(refused.status, 404)
      assert.include(refused.text, `<span class="who">ann<span class="soft">redrive</span></span>`)
      const stranger = yield* get("/", { headers: { host: "elsewhere.example" } })
      assert.strictEqual(stranger.status, 421)
      assert.notInclude(stranger.text, `class="who"`)
    })
  )
})
