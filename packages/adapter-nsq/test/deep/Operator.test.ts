import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { NsqOperator } from "../../src/index.ts"
import { channels } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, on, queueName } from "../world.ts"

describe("an operator", async () => {
  const { broker, direct, http } = await server()

  test("sees how a queue is set up", async () => {
    const queue = queueName("operated")
    await on(direct, () => consume(queue, []))
    const findings = await Effect.runPromise(NsqOperator.verify(queue, direct, { handlerTimeout: 60_000 }))
    assert.deepStrictEqual(
      findings.filter(({ isGood }) => !isGood).map(({ about }) => about),
      ["loss"]
    )
    assert.strictEqual(findings.find(({ about }) => about === "nsqd")?.detail, broker.version)
  })

  test("sees what is missing, and makes nothing", async () => {
    const queue = queueName("missing")
    const findings = await Effect.runPromise(NsqOperator.verify(queue, { nsqd: [...direct.nsqd!, "127.0.0.1:1"] }))
    const wrong = findings.filter(({ isGood }) => !isGood)
    assert.deepStrictEqual(
      wrong.map(({ about }) => about),
      ["nsqd", "topics", "loss"]
    )
    assert.match(wrong[0]!.detail, /127\.0\.0\.1:1/)
    assert.include(wrong[1]!.detail, `${queue}.requeue.retry/requeue`)
    assert.deepStrictEqual(await channels(http, queue), [])
  })
})

describe("of an nsqd", () => {
  const limits = { maxReqTimeout: 1, maxMsgSize: 2, maxBodySize: 3, msgTimeout: 60_000, maxMsgTimeout: 900_000 }
  const state: NsqOperator.NodeState = {
    nsqd: "h:4150",
    version: "1.3.0",
    limits,
    memQueueSize: 10_000,
    missing: [],
    refusals: []
  }

  test.each([
    ["all well", {}, {}, []],
    ["handlers that take longer than it waits", {}, { handlerTimeout: 900_000 }, ["lease"]],
    ["nothing kept in memory", { memQueueSize: 0 }, {}, ["delays"]],
    ["missing topics", { missing: ["a/b"] }, {}, ["topics"]],
    ["missing permissions", { refusals: ["SUB a b: E_UNAUTHORIZED"] }, {}, ["permissions"]]
  ] as const)("with %s", (_, change, request, wrong) => {
    const two = [
      { ...state, ...change },
      { ...state, nsqd: "i:4150" }
    ]
    const bad = NsqOperator.findingsOf(two, { publishTo: 2, ...request }).filter(
      ({ isGood, nsqd }) => !isGood && nsqd !== "i:4150"
    )
    assert.deepStrictEqual(
      bad.map(({ about }) => about),
      [...wrong]
    )
  })

  test("one alone loses what it has when it is killed, and says so", () =>
    assert.deepStrictEqual(
      NsqOperator.findingsOf([state], { publishTo: 1 })
        .filter(({ isGood }) => !isGood)
        .map(({ about }) => about),
      ["loss"]
    ))
})
