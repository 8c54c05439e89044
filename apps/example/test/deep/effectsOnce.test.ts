/**
 * Effects once on real servers: two worker processes are killed at every step of their handlers and relays, answers to COMMIT are lost,
 * and servers are killed. Each message has one row, and sends one message, which has one row.
 */
import { assert, describe, expect, test, vi } from "vitest"
import type { Setup } from "./effectsOnce/rig.ts"
import { type Books, run } from "./effectsOnce/run.ts"
import { type Step, steps } from "./effectsOnce/orders.ts"

const messages = 1000

const setups: ReadonlyArray<Setup> = [
  { database: "sqlite" },
  { database: "postgres" },
  { database: "postgres", broker: "rabbitmq" },
  { database: "postgres", broker: "nsq" },
  { database: "postgres", broker: "sqs" }
]

// The test kills its servers.
for (const name of ["POSTGRES", "RABBITMQ", "NSQ", "SQS"]) vi.stubEnv(`REQUEUE_${name}_URL`, "")

const report = (name: string, { effects, kills, left, receipts, ...rest }: Books) => {
  const size = (list: ReadonlyArray<number>) => `${list.length} of ${new Set(list).size}`
  const figures = { ...rest, kills: kills.length, effects: size(effects), receipts: size(receipts), left }
  console.log(name, JSON.stringify(figures))
}

describe.each(setups)("$database, broker: $broker", (setup) => {
  const name = `${setup.database} ${setup.broker ?? ""}`
  const ids = Array.from({ length: messages }, (_, of) => of)

  test("each message has one effect and sends one message", { timeout: 20 * 60_000 }, async () => {
    const books = await run(setup, "transaction", messages, 2)
    report(name, books)
    const ordered = (list: ReadonlyArray<number>) => list.toSorted((a, b) => a - b)
    expect(ordered(books.effects)).toEqual(ids)
    expect(ordered(books.receipts)).toEqual(ids)
    expect(books.left).toBe(0)
    const impossible: ReadonlyArray<Step> = [
      ...(setup.database === "sqlite" ? (["in COMMIT"] as const) : []),
      ...(setup.broker === undefined ? (["before publishing", "after publishing"] as const) : [])
    ]
    expect(steps.filter((step) => !books.kills.includes(step))).toEqual(impossible)
  })

  // A control: the same kills must be able to repeat effects.
  test("without transactions, some effects are repeated", { timeout: 20 * 60_000 }, async () => {
    const books = await run(setup, "ack", messages / 10, 1)
    report(`${name} without transactions`, books)
    assert.sameMembers([...new Set(books.effects)], ids.slice(0, messages / 10))
    assert.isAbove(books.effects.length, messages / 10)
  })
})
