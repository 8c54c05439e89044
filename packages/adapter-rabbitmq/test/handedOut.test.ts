import { assert, describe, it } from "@effect/vitest"
import * as HandedOut from "../src/internal/consume/handedOut.ts"

/** Copies by their returns, in the order in which they are handed out for the first time; `S` settles, `R` replaces. */
const play = (events: ReadonlyArray<number | "S" | "R">) => {
  const names = HandedOut.make()
  const answers: Array<boolean> = []
  for (const event of events) {
    if (event === "S") names.settled("x")
    else if (event === "R") names.replacing("x")
    else answers.push(names.first("x", event))
  }
  return { answers, isSettled: names.isSettled("x"), isRepeated: names.isRepeated("x") }
}

describe("the name of a copy names one message", () => {
  it.each([
    ["that was handed out once", [0, "S"], [true], true],
    ["that this process has replaced", [0, "R", 1, "S"], [true, true], true],
    ["that another process has replaced", [0, 3, "S"], [true, true], true],
    // The answer to the replacement was lost, so that both were there.
    ["that was settled, and whose replacement comes", [0, "R", "S", 1], [true, true], true],
    ["that was handed out before this process began", ["S"], [], true]
  ] as const)("%s", (_, events, answers, isSettled) =>
    assert.deepStrictEqual(play(events), { answers: [...answers], isSettled, isRepeated: false })
  )

  it.each([
    ["was handed out as new twice", [0, 0], [true, false]],
    ["was settled when it was handed out as new", ["S", 0], [false]],
    ["was settled when another process's replacement came", [0, "S", 1], [true, false]],
    ["comes in place of one that had as many returns", [2, 2], [true, false]],
    ["comes twice in place of one", [0, "R", 1, 1], [true, true, false]]
  ] as const)("and no longer one if it %s", (_, events, answers) =>
    assert.deepStrictEqual(play([...events, "S"]), { answers: [...answers], isSettled: false, isRepeated: true })
  )
})
