import { assert, describe, it } from "@effect/vitest"
import * as Connection from "../../src/port/Connection.ts"

describe("connections that are all needed", () => {
  const up = (since: number): Connection.Connection => ({ state: "up", since })
  const down = (since: number): Connection.Connection => ({ state: "down", since })

  it.each([
    ["are up since the last came up", up(1), up(2), up(2)],
    ["are down since the first went down", down(1), down(2), down(1)],
    ["are down while one is", up(2), down(1), down(1)]
  ])("%s", (_, first, second, expected) => {
    assert.deepStrictEqual(Connection.all(first, second), expected)
    assert.deepStrictEqual(Connection.all(second, first), expected)
    assert.deepStrictEqual(Connection.all(first, first, second), expected)
  })
})

it("a state is as old as its last change", () => {
  let now = 1
  const tracker = Connection.track("up", () => now++)
  tracker.set("up")
  assert.deepStrictEqual(tracker.current(), { state: "up", since: 1 })
  tracker.set("down")
  tracker.set("down")
  assert.deepStrictEqual(tracker.current(), { state: "down", since: 2 })
})

it("a state is down because of the last reason", () => {
  let now = 1
  const tracker = Connection.track("up", () => now++)
  for (const reason of ["refused", "reset"]) {
    tracker.set("down", reason)
    assert.deepStrictEqual(tracker.current(), { state: "down", since: 2, because: reason })
  }
  tracker.set("up")
  assert.deepStrictEqual(tracker.current(), { state: "up", since: 3 })
})
