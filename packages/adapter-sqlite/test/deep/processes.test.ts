import { describe, it } from "vitest"
import { run } from "../kills.ts"

describe("three processes on one file", () => {
  it("lose, double and hurry nothing when one of them is killed 20 times", { timeout: 600_000 }, () =>
    run({ messages: 20_000, kills: 20 })
  )
})
