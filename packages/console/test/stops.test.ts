/** Jobs and looks that end before their end, and what is told of it. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as Connections from "../src/internal/work/connections.ts"
import type { Work } from "../src/internal/work/job.ts"
import * as Jobs from "../src/internal/work/jobs.ts"
import * as Purge from "../src/internal/work/purge.ts"
import * as Selection from "../src/internal/work/selection.ts"
import { as, basic, prepared } from "./attacks/prepared.ts"
import * as World from "./world.ts"

const token = ({ text }: World.Arrived): string => /name="token" value="([^"]+)"/.exec(text)![1]!

const meant: Selection.Selection = {
  cause: "0123456789abcdef",
  letter: undefined,
  search: {},
  filter: undefined,
  title: "a cause",
  isMeant: Selection.ofCause("0123456789abcdef")
}

describe("a purge", () => {
  const stopped = Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    yield* broker.publish([World.outgoing({ id: "order-1" }, 0)])
    const layer = Layer.succeed(Broker.Broker, broker)
    const connection = yield* Connections.make({ name: "local", queues: World.queues, layer, secrets: [] })
    const lines: Array<string> = []
    const jobs = yield* Jobs.make((line) => void lines.push(line))
    const work = Purge.make(connection, "orders.dlq", meant)
    const run: Work["run"] = (job) => work.run({ ...job, signal: AbortSignal.abort() })
    const { id } = yield* jobs.begin({ ...work, run }, "ann")
    yield* TestClock.adjust("1 second")
    return { job: jobs.of(id)!, last: JSON.parse(lines.at(-1)!) as Record<string, unknown> } // Our own line.
  })

  it.effect("that was stopped says so, and what it has left", () =>
    Effect.gen(function* () {
      const { job, last } = yield* stopped
      assert.deepInclude(job.purged!, { removed: 0, left: 1, held: 0, stoppedBy: "abort" })
      assert.strictEqual(last["outcome"], "abort")
    })
  )

  it.effect("tells of letters that another reader has", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      let held = 0
      const counts: Broker.Admin["counts"] = (queue) =>
        Effect.map(own.admin.counts(queue), (told) => ({ ...told, inFlight: held, isRead: held > 0, isMissing: false }))
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, counts } })
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      const authorize = Authorization.everybody("root", "purge")
      const { get, post, settled } = World.browser(yield* Console.make({ brokers, audit: () => {}, authorize }))
      const fields = {
        broker: "local",
        queue: "orders.dlq",
        name: "orders.dlq",
        token: token(yield* get(World.deadLetters))
      }
      // As a look of another process.
      held = 3
      const begun = yield* post("/purge", fields)
      const { text } = yield* settled(begun.headers.get("location")!)
      assert.match(text, /removed<\/dt><dd><span class="zero">0<.*held by another reader.*<span class="alarm">3</)
    })
  )

  it.effect("is stopped by those who may begin one, and by nobody else", () =>
    Effect.gen(function* () {
      const { causes, get, post, submit } = yield* prepared({ authorize: basic }, as("purge"))
      const begun = yield* submit(causes, "/purge", { name: "orders.dlq" }, as("purge"))
      const id = new URLSearchParams(begun.headers.get("location")!.split("?")[1]).get("id")!
      const stop = (name: string) =>
        Effect.flatMap(get(World.deadLetters, as(name)), (page) => post("/stop", { id, token: token(page) }, as(name)))
      assert.strictEqual((yield* stop("redrive")).status, 403)
      assert.strictEqual((yield* stop("purge")).status, 303)
    })
  )
})

describe("a dry run", () => {
  it.effect("says where somebody else reads the letters, and the broker does not tell how many they have", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      let isRead = false
      // As RabbitMQ without its management interface, while another process redrives.
      const counts: Broker.Admin["counts"] = (queue) =>
        Effect.map(own.admin.counts(queue), (told) => ({ ...told, inFlight: isRead ? undefined : 0, isRead }))
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, counts } })
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      const { settled, submit } = World.browser(yield* Console.make({ brokers, audit: () => {} }))
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      const causes = yield* settled(World.deadLetters)
      isRead = true
      const plan = yield* submit(causes, "/plan")
      const { text } = yield* settled(plan.headers.get("location")!)
      assert.match(text, /held by another reader[^]*?the broker does not report it/)
    })
  )
})

describe("a stream", () => {
  it.effect("of a look that has ended and is forgotten between two readings ends", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      const browse: Broker.Admin["browse"] = (...args) => Effect.delay(own.admin.browse(...args), "10 seconds")
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, browse } })
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      const authorize = Authorization.everybody("root", "purge")
      const console = yield* Console.make({ brokers, audit: () => {}, authorize })
      const { get, post } = World.browser(console)
      const page = yield* get(World.deadLetters)
      const request = new Request(`${World.origin}/live/look?broker=local&queue=orders.dlq`, {
        headers: { host: "localhost:4747" }
      })
      const response = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
      const reader = response.body!.getReader()
      const read = Effect.promise(async () => {
        const { done, value } = await reader.read()
        return { done, value: new TextDecoder().decode(value) }
      })
      assert.include((yield* read).value, "Browsing")
      yield* TestClock.adjust("20 seconds")
      yield* post("/purge", { broker: "local", queue: "orders.dlq", name: "orders.dlq", token: token(page) })
      yield* TestClock.adjust("1 second")
      assert.include((yield* read).value, "event: over")
      assert.isTrue((yield* read).done)
    })
  )
})
