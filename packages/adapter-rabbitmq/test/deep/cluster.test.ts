/** Three nodes, of which one at a time goes away while messages are under way, and the books balance. */
import { start, type RabbitMqBroker } from "@requeue/brokers"
import { Books, Workload } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, describe, test } from "vitest"
import { balance, ids, on, publishAll, queueName, quiet, until } from "../world.ts"

const version = process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest"

const cluster = () => start("rabbitmq", { nodes: 3, version })

const hostsOf = (nodes: RabbitMqBroker["nodes"]) => nodes.map(({ url }) => new URL(url).host)

/** Waits until queues have all of their replicas again: the next node may go away then. */
const whole = (node: RabbitMqBroker["nodes"][number]) =>
  Effect.gen(function* () {
    yield* Effect.promise(() => node.ctl("await_online_nodes", "3"))
    // Queues that could not do without this node.
    const critical = () => node.ctl("eval", "rabbit_quorum_queue:list_with_minimum_quorum().")
    yield* until("replicas in step", async () => (await critical()).trim() === "[]", 120_000)
  })

/** The longest time without a run since then, in milliseconds. */
const longestPause = (runs: ReadonlyArray<number>, since: number): number => {
  const times = [since, ...runs.filter((at) => at > since), Date.now()]
  return Math.max(...times.slice(1).map((at, index) => at - times[index]!))
}

describe("a cluster", () => {
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
    const published: Array<string> = []
    const books = Books.make(published)
    const [times, pauses]: [Array<number>, Array<number>] = [[], []]
    const ran = (id: string) => {
      times.push(Date.now())
      books.ran(id)
    }
    await on({ url: nodes[0]!.url, hosts: hostsOf(nodes.slice(1)) }, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, { ...books, ran })
        let isOver = false
        const publishing = yield* Effect.forkChild(
          Effect.gen(function* () {
            while (!isOver) {
              const portion = ids(20 + published.length).slice(published.length)
              published.push(...portion)
              yield* publishAll(broker, queue, portion)
              yield* Effect.sleep(50)
            }
          })
        )
        for (const node of nodes) {
          const ended = Books.ended(books)
          yield* until("progress", () => Books.ended(books) > ended + 200)
          const since = Date.now()
          yield* Effect.promise(node.stop)
          const before = books.runs.length
          yield* until("a run while a node is away", () => books.runs.length > before)
          yield* Effect.promise(node.start)
          yield* whole(node)
          pauses.push(longestPause(times, since))
        }
        isOver = true
        yield* Fiber.join(publishing)
        yield* Books.untilEnded(books)
        yield* quiet(broker)
      })
    )
    const runs = Map.groupBy(books.runs, (id) => id)
    const again = [...runs].filter(([id, all]) => all.length > Workload.runsOf(id)).length
    console.log(
      `${published.length} messages, ${books.runs.length} runs, ${again} messages ran again; ` +
        `the longest times without a run were ${pauses.join(", ")} ms`
    )
    await balance(nodes[0]!.url, queue, books)
    assert.deepStrictEqual([...books.deadLettered].toSorted(), published.filter(Workload.isDoomed).toSorted())
  })
})
