import { describe, it } from "vitest"
import { run } from "../kills.ts"

describe("three processes on one file, of which one is killed 20 times", () => {
  it("lose, double and hurry nothing", { timeout: 600_000 }, () => run({ form: "ack", messages: 20_000, kills: 20 }))

  it("write one row and send one message for each message in transactions", { timeout: 600_000 }, () =>
    run({ form: "transaction", messages: 20_000, kills: 20 })
  )
})
