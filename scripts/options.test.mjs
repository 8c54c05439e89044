/** Tables of options: the default in a docstring is extracted, and compared with the code. */
import assert from "node:assert/strict"
import { test } from "node:test"
import { agree, apart, sameRange, withoutRange } from "./options/page.mjs"
import { read } from "./options/source.mjs"

test("a docstring is taken apart, wherever its default stands", () => {
  assert.deepEqual(apart("Polls, 1 to 50. Default: 10."), { meaning: "Polls, 1 to 50.", said: "10" })
  assert.deepEqual(apart("1 to 50; default: 10."), { meaning: "1 to 50.", said: "10" })
  assert.deepEqual(apart("Batches, 1 to 1,000. Default 1. More follows."), {
    meaning: "Batches, 1 to 1,000. More follows.",
    said: "1"
  })
  assert.deepEqual(apart("The address."), { meaning: "The address.", said: undefined })
})

test("a default agrees with the code in any unit, and with a reason behind it", () => {
  for (const [said, given] of [
    ["30 seconds", 30_000],
    ["1,000", 1000],
    ['`"fail"`', "fail"],
    ["`requeue`", "requeue"],
    ["`false`", false],
    ["1 second, for pauses of 2, 4, 8 seconds", 1000],
    ["`auto`, which is the ladder", "auto"]
  ]) {
    assert.ok(agree(said, given), said)
  }
  for (const [said, given] of [
    ["30 seconds", 10_000],
    ["1", 2],
    [undefined, 3],
    ["none", "sqs"]
  ]) {
    assert.ok(!agree(said, given), said)
  }
})

test("a range is taken from its docstring", () => {
  assert.deepEqual(withoutRange("The longest delay. Range: 0 to 24 hours; a number means milliseconds."), {
    meaning: "The longest delay.",
    range: "0 to 24 hours"
  })
  assert.deepEqual(withoutRange("The address."), { meaning: "The address.", range: undefined })
})

test("a range agrees with the code in any unit", () => {
  for (const [range, expected] of [
    ["0 to 24 hours", "a duration from 0ms to 1d"],
    ["100 ms to 2 minutes", "a duration from 100ms to 2m"],
    ["1 to 65,535", "a whole number from 1 to 65535"],
    ['1 or more, or `"unlimited"`', 'a whole number >= 1 or "unlimited"'],
    ["any", "a function"]
  ]) {
    assert.ok(sameRange(range, expected), range)
  }
  for (const [range, expected] of [
    ["0 to 12 hours", "a duration from 0ms to 1d"],
    ["1 to 100", "a whole number from 1 to 1000"],
    [undefined, "a whole number >= 1"]
  ]) {
    assert.ok(!sameRange(range, expected), expected)
  }
})

test("members and defaults are those of the source", () => {
  const { defaults, members } = read("packages/core/src/policy/BatchPolicy.ts")
  assert.deepEqual([...members("Options").keys()], ["maxBatchSize", "maxBatchTimeout"])
  assert.deepEqual(Object.fromEntries(defaults()), { maxBatchSize: 10, maxBatchTimeout: 5000 })
})

test("members that are inherited are members, from the file that declares them", () => {
  const members = read("packages/core/src/faces/internal/options.ts").members("PullerOptions")
  assert.equal(members.get("retry").file, "packages/core/src/faces/internal/options.ts")
  assert.equal(members.get("lease").file, "packages/core/src/consume/Puller.ts")
  assert.equal(members.get("retryDelay").file, "packages/core/src/consume/ConsumerOptions.ts")
  assert.ok(!members.has("concurrency"))
})
