import { assert, describe, it } from "vitest"
import { alike, argumentsOf, matches, record, setupOf, steps, turns } from "./Session.ts"

const page = `# Page
<!-- runs on: rabbitmq -->
\`\`\`yaml requeue.config.yaml
a: 1
\`\`\`
\`\`\`sh
npm install
\`\`\`
\`\`\`console
$ first
one
two
$ second \\
    --more
$ third
\`\`\`
`

describe("a page", () => {
  it("has files and commands", () => {
    assert.deepStrictEqual(steps(page), [
      { _tag: "File", line: 3, name: "requeue.config.yaml", text: "a: 1\n" },
      { _tag: "Command", line: 10, command: "first", output: ["one", "two"] },
      { _tag: "Command", line: 13, command: "second \\\n    --more", output: [] },
      { _tag: "Command", line: 15, command: "third", output: [] }
    ])
    assert.deepStrictEqual(turns(page), [{ brokers: ["rabbitmq"], each: undefined }])
  })

  it("may be set up by another page", () => {
    assert.strictEqual(setupOf("<!-- set up by: a/setup.md -->"), "a/setup.md")
    assert.isUndefined(setupOf(page))
  })

  it("may be for each of several brokers", () => {
    assert.deepStrictEqual(turns("<!-- runs on each of: nsq, sqs -->"), [
      { brokers: ["nsq"], each: "nsq" },
      { brokers: ["sqs"], each: "sqs" }
    ])
    assert.deepStrictEqual(turns("# Page"), [{ brokers: [], each: undefined }])
  })

  it("may have blocks for some of them", () => {
    const block = (info: string, command: string) => `\`\`\`${info}\n$ ${command}\n\`\`\`\n`
    const several = block("console", "all") + block("console nsq sqs", "two") + block("console rabbitmq", "one")
    const typed = (each?: string) => steps(several, each).map((step) => step._tag === "Command" && step.command)
    assert.deepStrictEqual(
      [typed("nsq"), typed("rabbitmq"), typed("memory")],
      [["all", "two"], ["all", "one"], ["all"]]
    )
    assert.deepStrictEqual(typed(), ["all", "two", "one"])
  })

  it("may say what differs, and nothing else does", () => {
    const all = alike("<!-- differs: times, ages, operations -->")
    const same = (one: string, other: string) => assert.deepStrictEqual(all([one]), all([other]))
    const different = (one: string, other: string) => assert.notDeepEqual(all([one]), all([other]))
    same("at 2026-03-14T15:09:26.535Z", "at 2027-01-01T00:00:00.000Z")
    same("12  orders  3.2s    980ms   order-12", "12  orders  1m 4s   12s     order-12")
    same("give --operation 5c3e35fbd580, now", "give --operation aef7f3e28806, now")
    different("12  orders  3.2s  1s  order-12", "11  orders  3.2s  1s  order-12")
    different("12  orders  3.2s  1s  order-12", "12  orders  3.2s  1s  order-11")
    different("again in 500ms", "again in 501ms")
    different("--operation fix-17", "--operation fix-18")
    different("a b", "a  b")
    assert.deepStrictEqual(alike("# Page")(["a   1s"]), ["a   1s"])
    assert.throws(() => alike("<!-- differs: ids -->"), "differs: has no ids")
  })

  it("can be recorded anew", () => {
    const outputs = new Map([
      [10, ["three"]],
      [13, ["four", "five"]]
    ])
    const expected = page.replace("one\ntwo", "three").replace("--more", "--more\nfour\nfive")
    assert.strictEqual(record(page, outputs), expected)
    assert.strictEqual(record(page, new Map()), page)
  })
})

describe("a command", () => {
  it.each<readonly [string, ReadonlyArray<string> | undefined]>([
    ["requeue status", ["status"]],
    [
      `requeue send -q orders/billing '{"a": 1}' --header a=b`,
      ["send", "-q", "orders/billing", '{"a": 1}', "--header", "a=b"]
    ],
    ["requeue", []],
    ["requeue status; echo $?", undefined],
    ["requeue status > file", undefined],
    ["requeue send $BODY", undefined],
    ['requeue send "$BODY"', undefined],
    ["REQUEUE_BROKER=nsq requeue check", undefined],
    ["node worker.mjs", undefined]
  ])("%j has the arguments %j, or needs a shell", (command, expected) => {
    assert.deepStrictEqual(argumentsOf(command), expected)
  })
})

describe("an output", () => {
  it.each<readonly [boolean, ReadonlyArray<string>, ReadonlyArray<string>]>([
    [true, ["a", "b"], ["a", "b"]],
    [false, ["a", "b"], ["a"]],
    [false, ["a"], ["a", "b"]],
    [true, ["a … c"], ["a bb c"]],
    [true, ["(a) …"], ["(a) 12"]],
    [false, ["a … c"], ["a bb d"]],
    [true, ["a", "…", "d"], ["a", "b", "c", "d"]],
    [true, ["a", "…", "d"], ["a", "d"]],
    [true, ["a", "…"], ["a"]],
    [false, ["a", "…", "d"], ["a", "b"]],
    [true, [], []],
    [false, [], ["a"]]
  ])("matches: %s, %j and %j", (expected, said, actual) => {
    assert.strictEqual(matches(said, actual), expected)
  })
})
