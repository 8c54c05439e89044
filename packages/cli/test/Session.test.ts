import { assert, describe, it } from "vitest"
import { argumentsOf, matches, record, steps, turns } from "./Session.ts"

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

  it("may be for each of several brokers", () => {
    assert.deepStrictEqual(turns("<!-- runs on each of: nsq, sqs -->"), [
      { brokers: ["nsq"], each: "nsq" },
      { brokers: ["sqs"], each: "sqs" }
    ])
    assert.deepStrictEqual(turns("# Page"), [{ brokers: [], each: undefined }])
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
