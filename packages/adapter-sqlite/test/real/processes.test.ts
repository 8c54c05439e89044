import { describe, it } from "vitest"
import { run } from "../kills.ts"

describe("three processes on one file, of which two are killed", () => {
  it("lose, double and hurry nothing", { timeout: 120_000 }, () => run({ form: "ack", messages: 300, kills: 2 }))

  it("write one row and send one message for each message in transactions", { timeout: 120_000 }, () =>
    run({ form: "transaction", messages: 300, kills: 2 })
  )
})
