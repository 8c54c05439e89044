/** The facts that the server reports: what it stores, delivers, returns and loses, by its own numbers. */
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import type { Fact } from "../../src/servers/sqs/Facts.ts"
import { ids, no, on, type World } from "./world.ts"

/** Runs a program on a queue `q`, and returns the facts in short. */
const facts = async (program: (world: World) => Effect.Effect<unknown>): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  const listen = (fact: Fact): void => {
    const { _tag: tag, message, queue } = fact
    const details: Partial<Record<Fact["_tag"], string>> = {
      HandedOut: `by ${"delivery" in fact ? fact.delivery : ""}`,
      Gone: "why" in fact ? fact.why : ""
    }
    seen.push(`${tag} ${message.copy} ${queue} ${details[tag] ?? ""}`.trim())
  }
  await on({ listen }, (world) =>
    Effect.andThen(
      world.ask("CreateQueue", "q", { QueueName: "q", Attributes: { VisibilityTimeout: "10" } }),
      program(world)
    )
  )
  return seen
}

const send = ({ ask }: World, ...bodies: ReadonlyArray<string>) =>
  ask("SendMessageBatch", "q", { Entries: bodies.map((MessageBody, Id) => ({ Id: String(Id), MessageBody })) })

/** Receives one message, and returns its handle. */
const receive = ({ ask }: World) =>
  Effect.map(ask("ReceiveMessage", "q"), (reply) => {
    const { Messages = [] }: { readonly Messages?: ReadonlyArray<{ readonly ReceiptHandle: string }> } = reply
    return Messages[0]?.ReceiptHandle
  })

test("a message is stored, delivered and settled; its handle has the number of its delivery", async () => {
  let handle: string | undefined
  const seen = await facts((world) =>
    Effect.gen(function* () {
      yield* send(world, "a")
      handle = yield* receive(world)
      yield* world.ask("DeleteMessageBatch", "q", { Entries: [{ Id: "0", ReceiptHandle: handle }] })
    })
  )
  assert.deepStrictEqual(seen, ["Stored 1 q", "HandedOut 1 q by 2", "Gone 1 q settled"])
  assert.strictEqual(handle, "AQEB2")
})

test("a message comes back when its lease ends, and when a client returns it", async () => {
  const seen = await facts((world) =>
    Effect.gen(function* () {
      yield* send(world, "a")
      yield* receive(world)
      yield* Effect.sleep(11_000)
      const handle = yield* receive(world)
      const Entries = [{ Id: "0", ReceiptHandle: handle, VisibilityTimeout: 0 }]
      yield* world.ask("ChangeMessageVisibilityBatch", "q", { Entries })
    })
  )
  const returned = ["HandedOut 1 q by 2", "Back 1 q", "HandedOut 1 q by 3", "Changed 1 q", "Back 1 q"]
  assert.deepStrictEqual(seen, ["Stored 1 q", ...returned])
})

test("a message that SQS moves, purges or drops is gone, and says why", async () => {
  const seen = await facts((world) =>
    Effect.gen(function* () {
      yield* world.ask("CreateQueue", "dlq", { QueueName: "dlq" })
      const deadLetterTargetArn = world.server.queue("dlq")?.arn
      const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 1 })
      yield* world.ask("SetQueueAttributes", "q", { Attributes: { RedrivePolicy, MessageRetentionPeriod: "60" } })
      yield* send(world, "a")
      yield* receive(world)
      yield* Effect.sleep(11_000)
      yield* receive(world)
      yield* send(world, "b")
      yield* world.ask("PurgeQueue", "q")
      yield* send(world, "c")
      yield* Effect.sleep(61_000)
    })
  )
  assert.deepStrictEqual(
    seen.filter((fact) => !fact.startsWith("Back")),
    [
      "Stored 1 q",
      "HandedOut 1 q by 2",
      "Gone 1 q backstop",
      "Stored 3 dlq",
      "Stored 4 q",
      "Gone 4 q purged",
      "Stored 5 q",
      "Gone 5 q expired"
    ]
  )
})

test("the same seed gives the same facts at the same times, with faults, retries and three processes", async () => {
  const story = async (): Promise<ReadonlyArray<string>> => {
    const seen: Array<string> = []
    let clock = () => 0
    const listen = ({ _tag: tag, message, queue }: Fact): void =>
      void seen.push(`${clock()} ${tag} ${message.copy} ${queue}`)
    await on({ listen, happens: (what) => what === "disorder" }, ({ broker, consume, lose, now, send, untilEmpty }) =>
      Effect.gen(function* () {
        clock = now
        const one = yield* broker()
        yield* send(one, "q", ids(30))
        lose("DeleteMessageBatch", "reset", { times: 3, every: 2 })
        lose("ReceiveMessage", "silence", { times: 2, every: 3 })
        for (const process of [one, yield* broker(), yield* broker()])
          yield* consume(process, "q", [], { concurrency: 4, retryDelay: 2000 }, ({ attempts }) =>
            attempts === 1 ? no : Effect.sleep(300)
          )
        yield* untilEmpty("q")
      })
    )
    return seen
  }
  const first = await story()
  assert.isAbove(first.length, 100)
  assert.deepStrictEqual(await story(), first)
})
