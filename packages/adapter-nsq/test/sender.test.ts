/** What is told of each message of a call: table by table, without nsqd. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import { Direct } from "@requeue/core/port"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as NsqOptions from "../src/NsqOptions.ts"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"
import type { Nodes } from "../src/internal/connect/nodes.ts"
import type { Publisher } from "../src/internal/publish/publisher.ts"
import * as Sender from "../src/internal/publish/sender.ts"
import { outgoing } from "./world.ts"

const error = (reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "nsq", operation: "publish", queue: "q", reason, detail: reason })

type Answer = "Stored" | "Unread" | BrokerError.Reason

const limits = { maxReqTimeout: 1000, maxMsgSize: 10_000, maxBodySize: 10_000, msgTimeout: 1000, maxMsgTimeout: 1000 }

const itemOf = (name: string) => ({
  message: { ...outgoing("q", name), body: Buffer.from(name) },
  target: { topic: "q", channel: "requeue", isOwn: false },
  isCopy: false
})

/** What each nsqd answers to each message, call by call; the last of the calls finds no nsqd. */
const send = (answers: ReadonlyArray<Readonly<Record<string, Answer>>>, count = 1) => {
  let calls = 0
  const publishers = (many: number) =>
    Array.from({ length: many }, () => {
      let mine: Readonly<Record<string, Answer>> | undefined
      const publisher: Pick<Publisher, "node" | "write"> = {
        node: { name: "h:4150", address: { host: "h", port: 4150, http: undefined }, clock: NsqdClock.make() },
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
    elapsed: () => 0,
    fork: Effect.runFork
  })
  const items = Object.keys(answers[0] ?? { a: 0 }).map(itemOf)
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

/** A sender with room for one message, and the ways to end what it has written. */
const withRoomForOne = () => {
  const written: Array<string> = []
  /** Whether each of them is written in a command of its own. */
  const alone: Array<boolean> = []
  const answer: Array<(result: "Stored" | BrokerError.BrokerError) => void> = []
  const publisher: Pick<Publisher, "node" | "write"> = {
    node: { name: "h:4150", address: { host: "h", port: 4150, http: undefined }, clock: NsqdClock.make() },
    write: ({ payload }, isAlone, done) => {
      written.push(payload.toString())
      alone.push(isAlone)
      answer.push(done)
    }
  }
  const publishers = [publisher as Publisher] // all that is used
  const sender = Sender.make({
    settings: Result.getOrThrow(NsqOptions.decode({ envelope: "never", maxUnconfirmed: 1 })),
    nodes: { limits: () => limits } as Nodes, // all that is used
    publishing: {
      ready: () => publishers,
      pick: () => Effect.succeed(publishers),
      state: () => ({ state: "up", since: 0 })
    },
    declare: Object.assign(() => Effect.void, { isDone: () => true }),
    now: () => 0,
    elapsed: () => 0,
    fork: Effect.runFork
  })
  /** Sends without a fiber. Answers what gives it up, and how it has ended. */
  const begin = (...names: ReadonlyArray<string>) => {
    const exits: Array<Exit.Exit<void, BrokerError.BrokerError>> = []
    const giveUp = Direct.run(sender.send(names.map(itemOf), { count: 1 }), Effect.runFork, (exit) => exits.push(exit))
    const told = () =>
      exits.map((exit) =>
        Exit.isSuccess(exit) ? "sent" : (Cause.squash(exit.cause) as BrokerError.BrokerError).reason
      )
    return { giveUp, told }
  }
  return { alone, answer, begin, written }
}

describe("what is given up", () => {
  it("when it is written may be stored, is not written again, and leaves its room when it is answered", () => {
    const { answer, begin, written } = withRoomForOne()
    const [a, b] = [begin("a"), begin("b")]
    a.giveUp()
    assert.deepStrictEqual([a.told(), written], [["Timeout"], ["a"]])
    answer[0]!(error("ConnectionLost"))
    assert.deepStrictEqual(written, ["a", "b"])
    answer[1]!("Stored")
    assert.deepStrictEqual([a.told(), b.told()], [["Timeout"], ["sent"]])
  })

  it("when it is being written again, alone, may be stored, and leaves its room when it is answered", () => {
    const { alone, answer, begin, written } = withRoomForOne()
    const [a, b] = [begin("a"), begin("b")]
    answer[0]!(error("ConnectionLost"))
    // Who waits comes first.
    answer[1]!("Stored")
    assert.deepStrictEqual(written, ["a", "b", "a"])
    assert.deepStrictEqual(alone, [false, false, true])
    a.giveUp()
    assert.deepStrictEqual([a.told(), b.told()], [["ConnectionLost"], ["sent"]])
    const c = begin("c")
    assert.deepStrictEqual(written, ["a", "b", "a"])
    answer[2]!("Stored")
    answer[3]!("Stored")
    assert.deepStrictEqual(c.told(), ["sent"])
  })

  it.each([[["b"]], [["b", "c"]]])("while it waits for room is not written: %j", (names) => {
    const { answer, begin, written } = withRoomForOne()
    const [a, b, d] = [begin("a"), begin(...names), begin("d")]
    b.giveUp()
    assert.deepStrictEqual(b.told(), ["ConnectionFailed"])
    answer[0]!("Stored")
    assert.deepStrictEqual(written, ["a", "d"])
    answer[1]!("Stored")
    assert.deepStrictEqual([a.told(), d.told()], [["sent"], ["sent"]])
  })
})
