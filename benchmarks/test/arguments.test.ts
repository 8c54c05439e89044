import { assert, describe, it } from "vitest"
import * as Arguments from "../src/arguments.ts"

const parse = (...args: ReadonlyArray<string>) => Arguments.parse(args, (file) => `/here/${file}`)

describe("arguments", () => {
  it("without a name, the suites with a star", () => {
    const asked = parse()
    assert.isTrue("suites" in asked && asked.suites.every(({ byDefault }) => byDefault) && asked.suites.length > 3)
  })

  it("names, files and rounds", () => {
    const asked = parse("micro", "--json", "x.json", "--rounds", "3", "--quick")
    if (!("suites" in asked)) throw new Error("misunderstood")
    const { suites, ...rest } = asked
    assert.deepStrictEqual(
      suites.map(({ name }) => name),
      ["micro"]
    )
    assert.deepStrictEqual(rest, {
      json: "/here/x.json",
      plots: undefined,
      docs: false,
      render: false,
      only: "",
      quick: true,
      rounds: 3
    })
  })

  it.each([
    [["nothing-of-this"]],
    [["--rounds", "0"]],
    [["--rounds", "two"]],
    [["--what"]],
    [["--docs", "--quick"]],
    [["--docs", "--case", "x"]]
  ])("%j is misuse", (args) => {
    assert.property(parse(...args), "misuse")
  })

  it("names of cases and entries are told apart, and every suite has one", () => {
    const asked = parse()
    if (!("suites" in asked)) throw new Error("misunderstood")
    for (const { cases, name } of asked.suites) {
      const all = cases((messages) => messages)
      assert.isNotEmpty(all, name)
      assert.strictEqual(new Set(all.map((one) => one.name)).size, all.length, name)
      for (const { entries } of all) assert.strictEqual(new Set(entries.map((e) => e.name)).size, entries.length, name)
    }
  })
})
