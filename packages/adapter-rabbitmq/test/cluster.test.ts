/** Three nodes, of which one at a time goes away while messages are under way, and the books balance. */
import { start, type RabbitMqBroker } from "@requeue/brokers"
import { Books, Workload } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, describe, test } from "vitest"
import { balance, ids, on, publishAll, queueName, quiet, until } from "./world.ts"

const version = process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest"
const can = process.env["REQUEUE_SLOW_TESTS"] === "1"

const cluster = () => start("rabbitmq", { nodes: 3, version })

const hostsOf = (nodes: RabbitMqBroker["nodes"]) => nodes.map(({ url }) => new URL(url).host)

/** Waits until queues have all of their replicas again: the next node may go away then. */
const whole = (node: RabbitMqBroker["nodes"][number]) =>
  Effect.gen(function* () {
    yield* Effect.promise(() => node.ctl("await_online_nodes", "3"))
    yield* until(
      "replicas in step",
      () =>
        node.ctl("eval", "rabbit_upgrade_preparation:list_with_minimum_quorum_for_cli().").then(
          (critical) => critical.trim() === "[]",
          () => false
        ),
      120_000
    )
  })

describe.runIf(can)("a cluster", () => {
  test("whose leader is killed goes on, and loses nothing", async () => {
    await using servers = await cluster()
    const [first, second, third] = servers.nodes
    const queue = queueName("cluster")
    const books = Books.make(ids(2000))
    await on({ url: first!.url, hosts: hostsOf([second!, third!]) }, (broker) =>
      Effect.gen(function* () {
        const publishing = yield* Effect.forkChild(publishAll(broker, queue, books.published))
        yield* Workload.start(queue, books)
        yield* until("progress", () => Books.ended(books) > 500)
        yield* Effect.promise(() => first!.kill())
        yield* Fiber.join(publishing)
        yield* Books.untilEnded(books)
      })
    )
    await balance(second!.url, queue, books)
  })

  test("whose nodes are restarted one after another goes on, and loses nothing", async () => {
    await using servers = await cluster()
    const { nodes } = servers
    const queue = queueName("rolling")
    const books = Books.make(ids(6000))
    const resumed: Array<number> = []
    await on({ url: nodes[0]!.url, hosts: hostsOf(nodes.slice(1)) }, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, books)
        const publishing = yield* Effect.forkChild(publishAll(broker, queue, books.published, 20))
        for (const [index, node] of nodes.entries()) {
          yield* until("progress", () => Books.ended(books) >= 800 * (index + 1))
          yield* Effect.promise(node.stop)
          const [gone, before] = [Date.now(), books.runs.length]
          yield* until("a run while a node is away", () => books.runs.length > before)
          resumed.push(Date.now() - gone)
          yield* Effect.promise(node.start)
          yield* whole(node)
        }
        // Messages were under way until the last node was back.
        const left = Books.missing(books).length
        console.log(`resumed after ${resumed.join(", ")} ms; ${left} messages left after the last restart`)
        yield* Fiber.join(publishing)
        yield* Books.untilEnded(books)
        yield* quiet(broker)
      })
    )
    await balance(nodes[0]!.url, queue, books)
    assert.deepStrictEqual([...books.deadLettered].toSorted(), books.published.filter(Workload.isDoomed).toSorted())
  })
})
