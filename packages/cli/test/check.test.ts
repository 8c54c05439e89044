import { assert, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

const orders = ["check", "--url", "memory:", "--queue", "orders"]

describe("requeue check", () => {
  it("says how each wish is met", async () => {
    const { code, stderr, stdout } = await requeue([...orders, "--policy", "webhookSender"])
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.strictEqual(
      stdout,
      [
        "queue   wish            answer  detail",
        "orders  retry.backoff   exact",
        "orders  handlerTimeout  exact",
        ""
      ].join("\n")
    )
  })

  it("ends with 1 when something is impossible, and says what to do", async () => {
    const { code, stderr, stdout } = await requeue([...orders, "--policy", '{"deadLetter":"orders"}'])
    assert.deepStrictEqual([code, stderr], [1, ""])
    assert.match(stdout, /orders +retry\.deadLetter +impossible +.*Name another queue, or none for orders\.dlq/)
  })

  it("prints one JSON value", async () => {
    const { stdout } = await requeue([...orders, "--json"])
    assert.deepStrictEqual(JSON.parse(stdout), {
      broker: "memory",
      wishes: [{ queue: "orders", wish: "handlerTimeout", answer: "exact", detail: "" }]
    })
  })
})
