/** Calls on dead letters while a part of the broker is away. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, type Broker } from "@requeue/core"
import { PermanentError } from "@requeue/core/promise"
import type { DeadLetterQueue } from "@requeue/operations/promise"
import * as Effect from "effect/Effect"
import { afterEach, vi } from "vitest"
import { open } from "./virtualBroker.ts"

const away = ["east", "west"].map(
  (part) =>
    new BrokerError.BrokerError({ broker: "memory", operation: "counts", reason: "Timeout", detail: `${part} is away` })
)

const without =
  (missing: ReadonlyArray<BrokerError.BrokerError>) =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    admin: {
      ...broker.admin,
      counts: (queue) => Effect.map(broker.admin.counts(queue), (counts) => ({ ...counts, missing }))
    }
  })

/** Lines of the log that name what is missing. */
const said = vi.spyOn(console, "error").mockImplementation(() => {})
const told = () => said.mock.calls.map(String).filter((line) => line.includes("is away"))
afterEach(() => void said.mockClear())

const all = async (letters: AsyncIterable<unknown>): Promise<number> => {
  let count = 0
  for await (const _ of letters) count++
  return count
}

const calls: ReadonlyArray<readonly [string, (dead: DeadLetterQueue) => Promise<unknown>]> = [
  ["count", (dead) => dead.count()],
  ["list", (dead) => dead.list()],
  ["list", (dead) => dead.list({ filter: () => true })],
  ["group", (dead) => dead.group()],
  ["read", (dead) => all(dead.read())],
  ["redrive", (dead) => dead.redrive()],
  ["redrive", (dead) => dead.redrive({ dryRun: true })],
  ["purge", (dead) => dead.purge({ all: true })],
  ["purge", (dead) => dead.purge({ filter: () => true })]
]

const world = async (missing: ReadonlyArray<BrokerError.BrokerError>) => {
  const broker = await open({}, without(missing), "Warn")
  const worker = await broker.requeue.consume("q", {}, () => {
    throw new PermanentError("no")
  })
  await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
  await broker.finish(worker.drain())
  return { broker, dead: deadLetters(broker.requeue, "q.dlq") }
}

describe("while a part of the broker does not answer", () => {
  it.each(calls)("%s says so in the log once each time, with what is left out: %s", async (operation, call) => {
    const { broker, dead } = await world(away)
    for (const times of [1, 2]) {
      await broker.finish(call(dead))
      assert.lengthOf(told(), times)
    }
    assert.match(
      told()[0]!,
      new RegExp(`level=WARN .*left out.*q\\.dlq.*operation=${operation} .*east is away.*west is away`)
    )
    await broker.requeue.close()
  })

  it("edit says so in the log once, with what is left out", async () => {
    const { broker, dead } = await world(away)
    const [letter] = await broker.finish(dead.list())
    said.mockClear()
    await broker.finish(dead.edit(letter!, { headers: {}, wait: 100 }))
    assert.lengthOf(told(), 1)
    assert.match(told()[0]!, /operation=edit .*east is away/)
    await broker.requeue.close()
  })

  it("missing tells why", async () => {
    const { broker, dead } = await world(away)
    assert.deepStrictEqual(await dead.missing(), away)
    await broker.requeue.close()
  })
})

it("where all of it answers, nothing is missing and nothing is said", async () => {
  const { broker, dead } = await world([])
  for (const [, call] of calls) await broker.finish(call(dead))
  assert.deepStrictEqual(await dead.missing(), [])
  assert.notInclude(said.mock.calls.join(), "left out")
  await broker.requeue.close()
})
