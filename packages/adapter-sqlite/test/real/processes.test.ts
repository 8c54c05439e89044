import { describe, it } from "vitest"
import { run } from "../kills.ts"

describe("three processes on one file", () => {
  it("lose, double and hurry nothing when one of them is killed", { timeout: 120_000 }, () =>
    run({ messages: 300, kills: 2 })
  )
})
