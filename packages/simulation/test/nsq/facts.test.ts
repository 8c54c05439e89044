/** What simulated nsqd report of their messages: it balances, it names each delivery, and it is the same for the same seed. */
import { NsqNative } from "@requeue/adapter-nsq"
import { Wait, Workload } from "@requeue/conformance"
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import type { Facts } from "../../src/servers/nsq/index.ts"
import { consume, run } from "./Bench.ts"

const queue = "orders"
const ids = Workload.ids(200)

interface Report {
  readonly facts: ReadonlyArray<Facts.Fact>
  /** Deliveries as handlers saw them. */
  readonly seen: ReadonlyArray<string>
}

const nameOf = (nsqd: string, topic: string, id: string, attempts: number) => `${nsqd} ${topic} ${id} ${attempts}`

/** Two consumers on two nsqd, of which one restarts, and connections that are cut. */
const story = async (seed: string): Promise<Report> => {
  const facts: Array<Facts.Fact> = []
  const seen: Array<string> = []
  const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant(300) })
  await run({
    name: "a story",
    settings: {
      nodes: 2,
      seed,
      options: { publishOver: "all" },
      // The message changes later.
      report: (fact) => facts.push({ ...fact, message: { ...fact.message } })
    },
    program: ({ network, nsqd, on }) =>
      on((broker) =>
        Effect.gen(function* () {
          const done = new Set<string>()
          const handler = (message: Parameters<typeof NsqNative.of>[0] & { id: string; attempts: number }) => {
            const { attempts, id, nsqd: at, topic } = NsqNative.of(message)!
            seen.push(nameOf(at.split(":")[0]!, topic, id, attempts))
            if (message.attempts === 1 && Number(message.id.slice(1)) % 3 === 0) return Effect.fail(new Error("no"))
            done.add(message.id)
            return Effect.sleep(20)
          }
          for (let count = 0; count < 2; count++) yield* consume(queue, [], { retry, concurrency: 5 }, handler)
          yield* Workload.publishAll(broker, queue, ids, 10)
          for (let count = 0; count < 3; count++) yield* Effect.andThen(Effect.sleep(200), Effect.sync(network.cut))
          nsqd[1]!.restart("orderly", 500)
          yield* Wait.until("all", () => done.size === ids.length)
          yield* Effect.sleep(10_000)
        })
      )
  })
  return { facts, seen }
}

const line = ({ _tag, message, place, ...rest }: Facts.Fact) =>
  [_tag, place.nsqd, place.topic, place.channel, message.copy, message.id, message.attempts, JSON.stringify(rest)].join(
    " "
  )

test("facts balance: each stored copy is gone once, and is back or gone once after each delivery", async () => {
  const { facts } = await story("one")
  const of = (tag: Facts.Fact["_tag"]) => facts.filter(({ _tag }) => _tag === tag)
  const copies = (tag: Facts.Fact["_tag"]) => of(tag).map(({ message }) => message.copy)
  assert.isAtLeast(copies("Stored").length, ids.length)
  assert.sameMembers(copies("Gone"), copies("Stored"))
  const open = new Map<number, number>()
  for (const fact of facts) {
    if (fact._tag === "HandedOut") {
      assert.isFalse(open.has(fact.message.copy), line(fact))
      open.set(fact.message.copy, fact.delivery.number)
    } else if (fact._tag === "Back" || fact._tag === "Gone") {
      assert.strictEqual(fact.delivery?.number, open.get(fact.message.copy), line(fact))
      open.delete(fact.message.copy)
    }
  }
  assert.strictEqual(open.size, 0)
  for (const why of ["requeued", "timeout", "restart"]) {
    assert.isTrue(
      facts.some((fact) => fact._tag === "Back" && fact.why === why),
      why
    )
  }
})

test("the native facts of a message name its delivery", async () => {
  const { facts, seen } = await story("one")
  const deliveries = facts.flatMap((fact) =>
    fact._tag === "HandedOut"
      ? [nameOf(fact.place.nsqd, fact.place.topic, fact.message.id, fact.delivery.attempts)]
      : []
  )
  assert.strictEqual(new Set(deliveries).size, deliveries.length)
  for (const each of seen) assert.include(deliveries, each)
})

test("the same seed gives the same facts, and another seed others", async () => {
  const [one, again, other] = [await story("one"), await story("one"), await story("two")]
  assert.deepStrictEqual(again.facts.map(line), one.facts.map(line))
  assert.notDeepEqual(other.facts.map(line), one.facts.map(line))
})
