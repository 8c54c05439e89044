/** What is told of each message of a call: table by table, without nsqd. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as NsqOptions from "../src/NsqOptions.ts"
import type { Nodes } from "../src/internal/connect/nodes.ts"
import type { Publisher } from "../src/internal/publish/publisher.ts"
import * as Sender from "../src/internal/publish/sender.ts"
import { outgoing } from "./world.ts"

const error = (reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "nsq", operation: "publish", queue: "q", reason, detail: reason })

type Answer = "Stored" | "Unread" | BrokerError.Reason

/** What each nsqd answers to each message, call by call; the last of the calls finds no nsqd. */
const send = (answers: ReadonlyArray<Readonly<Record<string, Answer>>>, count = 1) => {
  const limits = { maxReqTimeout: 1000, maxMsgSize: 10_000, maxBodySize: 10_000, msgTimeout: 1000, maxMsgTimeout: 1000 }
  let calls = 0
  const publishers = (many: number) =>
    Array.from({ length: many }, () => {
      let mine: Readonly<Record<string, Answer>> | undefined
      const publisher: Pick<Publisher, "node" | "write"> = {
        node: { name: "h:4150", address: { host: "h", port: 4150, http: undefined } },
        write: ({ payload }, _, done) => {
          mine ??= answers[calls++]!
          const answer = mine[payload.toString()]!
          done(answer === "Stored" || answer === "Unread" ? answer : error(answer))
        }
      }
      return publisher as Publisher // all that is used
    })
  const isGone = (many: number) => calls + many > answers.length
  const sender = Sender.make({
    settings: Result.getOrThrow(NsqOptions.decode({ envelope: "never" })),
    nodes: { limits: () => limits } as Nodes, // all that is used
    publishing: {
      ready: (many) => (isGone(many) ? undefined : publishers(many)),
      pick: (many) =>
        Effect.suspend(() =>
          isGone(many) ? Effect.fail(error("ConnectionFailed")) : Effect.succeed(publishers(many))
        ),
      state: () => ({ state: "up", since: 0 })
    },
    declare: Object.assign(() => Effect.void, { isDone: () => true }),
    now: () => 0,
    elapsed: () => 0
  })
  const items = Object.keys(answers[0] ?? { a: 0 }).map((name) => ({
    message: { ...outgoing("q", name), body: Buffer.from(name) },
    target: { topic: "q", channel: "requeue", isOwn: false },
    isCopy: false
  }))
  return Effect.flip(sender.send(items, { count }))
}

describe("of what is written again", () => {
  it.effect.each<[first: Answer, second: Answer | "no nsqd", told: BrokerError.Reason]>([
    ["ConnectionLost", "BodyTooLarge", "ConnectionLost"],
    ["ConnectionLost", "AccessRefused", "ConnectionLost"],
    ["ConnectionLost", "Throttled", "ConnectionLost"],
    ["ConnectionLost", "no nsqd", "ConnectionLost"],
    ["Unread", "BodyTooLarge", "BodyTooLarge"],
    ["Unread", "no nsqd", "ConnectionFailed"],
    ["Unread", "Timeout", "Timeout"]
  ])("%s, then %s is told as %s", ([first, second, told]) =>
    Effect.gen(function* () {
      const { reason } = yield* send([{ a: first }, ...(second === "no nsqd" ? [] : [{ a: second }])])
      assert.strictEqual(reason, told)
    })
  )

  it.effect("each message of a batch is told by itself", () =>
    Effect.gen(function* () {
      const { entries } = yield* send([
        { a: "Stored", b: "ConnectionLost", c: "Unread", d: "BodyTooLarge", e: "ConnectionLost" },
        { b: "AccessRefused", c: "AccessRefused", e: "Stored" }
      ])
      assert.deepStrictEqual(
        entries?.map(({ status }) => status),
        ["sent", "unknown", "failed", "failed", "sent"]
      )
    })
  )
})

describe("of what is stored on two nsqd", () => {
  it.effect.each<[first: Answer, second: Answer, status: BrokerError.Reason]>([
    ["Stored", "BodyTooLarge", "ConnectionLost"],
    ["BodyTooLarge", "Stored", "ConnectionLost"],
    ["BodyTooLarge", "BodyTooLarge", "BodyTooLarge"],
    ["Timeout", "BodyTooLarge", "Timeout"]
  ])("%s on one and %s on the other is told as %s", ([first, second, told]) =>
    Effect.gen(function* () {
      const { reason } = yield* send([{ a: first }, { a: second }], 2)
      assert.strictEqual(reason, told)
    })
  )
})
