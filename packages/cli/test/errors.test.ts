/** What goes wrong outside of a command's own work: one line with a remedy, and an exit code of the table. */
import { assert, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number, RegExp]> = [
  [["chek"], 2, /^requeue: Unknown subcommand "chek".*check.*Try requeue --help$/],
  [["check", "--ur", "memory:"], 2, /^requeue: Unrecognized flag: --ur.*--url.*Try requeue check --help$/],
  [["check", "--url", "memory:"], 2, /^requeue: no queue is given\. Give --queue/],
  [["check", "--url", "gopher://x", "-q", "a"], 2, /^requeue: url: no adapter serves the scheme gopher:/],
  [["check", "--url", "amqp://me:hunter2@127.0.0.1:1", "-q", "a"], 3, /ECONNREFUSED.*is the server running\?$/],
  [["check", "--url", "memory:", "-q", "a", "--policy", "webhook"], 2, /no policy named webhook.*webhookSender/]
]

describe("an error", () => {
  it.each(cases)("%j", async (args, expected, message) => {
    const { code, stderr, stdout } = await requeue(args)
    assert.deepStrictEqual([code, stdout], [expected, ""])
    assert.match(stderr.trimEnd(), message)
    assert.strictEqual(stderr.trimEnd().split("\n").length, 1)
    assert.notInclude(stderr, "hunter2")
  })

  it("is one line of JSON with --json", async () => {
    const { stderr } = await requeue(["check", "--url", "amqp://127.0.0.1:1", "-q", "a", "--json"])
    const { error } = JSON.parse(stderr) as { error: { reason: string; message: string } }
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.include(error.message, "ECONNREFUSED")
  })
})

const letterCommands = ["list", "group", "peek", "export", "purge --yes", "redrive --yes"].map(
  (name) => `dead-letters ${name}`
)
const delayedCommands = ["list", "count", "purge --yes"].map((name) => `delayed ${name}`)
const commands = [
  ...letterCommands,
  ...delayedCommands,
  ..."status tail pause resume verify plan create check clean simulate send".split(" ")
]

/** A script gives an empty text where it uses a variable that is not set: it must not mean every letter. */
const empty: ReadonlyArray<readonly [string, string, string]> = [
  ...letterCommands.flatMap((command) =>
    ["--error", "--origin", "--id", "--header", "-H", "--reason", "--since", "--older-than", "--dlq"].map(
      (flag) => [command, flag, ""] as const
    )
  ),
  ...letterCommands.map((command) => [command, "--id", "*"] as const),
  ...letterCommands.map((command) => [command, "--id", "**"] as const),
  ...letterCommands.map((command) => [command, "--header", "=acme"] as const),
  ...[...letterCommands, ...delayedCommands].map((command) => [command, "--error", " "] as const),
  ...delayedCommands.flatMap((command) =>
    ["--error", "--id", "--due-after"].map((flag) => [command, flag, ""] as const)
  ),
  ...commands.map((command) => [command, "--queue", ""] as const),
  ...commands.map((command) => [command, "--config", ""] as const),
  ["dead-letters redrive --yes", "--to", ""],
  ["dead-letters import x", "--to", ""],
  ["dead-letters export", "--output", ""],
  ["send 1", "--id", ""],
  ["clean", "--prefix", ""]
]

describe("a text that is empty, or means everything", () => {
  it.each(empty)("%s %s %j is refused", async (command, flag, value) => {
    const { code, stderr, stdout } = await requeue([...command.split(" "), flag, value])
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, new RegExp(`^requeue: .*${flag === "-H" ? "--header" : flag}.*Try requeue .*--help`))
  })
})

describe("a wrong value is refused, and help is not the answer", () => {
  const broker = "--url amqp://127.0.0.1:1 --queue a"
  it.each<readonly [string, string]>([
    [`dead-letters purge ${broker} --yes --older-than -1h`, "older-than"],
    [`dead-letters purge ${broker} --yes --older-than=-1h`, "older-than"],
    [`dead-letters purge ${broker} --yes --newer-than -1.5h`, "newer-than"],
    [`dead-letters purge ${broker} --since -2h --yes`, "since"],
    [`dead-letters purge ${broker} --since -.5h --yes`, "since"],
    [`dead-letters purge ${broker} --since -2d --yes`, "since"],
    [`dead-letters purge ${broker} --limit 1 -2h`, "unrecognized flag: -2h"],
    [`dead-letters purge ${broker} --id x --yes -2h`, "yes"],
    [`dead-letters purge ${broker} --id x --yes true -2h`, "unrecognized flag: -2h"],
    [`dead-letters redrive ${broker} --yes --wait -1h`, "wait"],
    [`dead-letters redrive ${broker} --yes --stages -1h`, "stages"],
    [`dead-letters redrive ${broker} --yes --rate -1h`, "rate"],
    [`delayed purge ${broker} --due-after -1h --yes`, "due-after"],
    [`send ${broker} 1 --delay -1h`, "delay"],
    [`status ${broker} --watch --interval -1h`, "interval"],
    ["status -what", "unrecognized flag: -what"],
    ...["2026-02-30T00:00Z", "2026-02-30", "2025-02-29", "2026-04-31T10:00", "2026-00", "2026-13-01"].map(
      (time) => [`dead-letters purge ${broker} --yes --since ${time}`, "since"] as const
    )
  ])("%s", async (line, named) => {
    const { code, stderr, stdout } = await requeue(line.split(" "))
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, new RegExp(`^requeue: .*${named}`))
  })

  it.each(["dead-letters purge -h", "dead-letters purge --yes -h", "status --queue a -h"])(
    "that is asked for is help: %s",
    async (line) => {
      const { code, stdout } = await requeue(line.split(" "))
      assert.deepStrictEqual([code, stdout.includes("USAGE")], [0, true])
    }
  )

  it("and a value that begins with a dash is one", async () => {
    const { code, stderr } = await requeue([
      ..."dead-letters list --url amqp://127.0.0.1:1 -q a --error".split(" "),
      "-hello"
    ])
    assert.deepStrictEqual([code, /ECONNREFUSED/.test(stderr)], [3, true])
  })
})

it("a file that is not there is a mistake in the command, though nobody reads it yet", async () => {
  const { code, stderr, stdout } = await requeue(["dead-letters", "import", "nowhere.jsonl", "--url", "memory:"])
  assert.deepStrictEqual([code, stdout], [2, ""])
  assert.match(stderr, /ENOENT.*'nowhere\.jsonl'\. Give a file that can be read/)
})

describe("what cannot be done is refused in one line, before the broker is asked", () => {
  const broker = "--url amqp://127.0.0.1:1 --queue a".split(" ")

  it.each<readonly [string, ReadonlyArray<string>, RegExp]>([
    ["send", ["no json"], /^requeue: the body is not JSON, and .*or give --raw$/],
    ["send", ["1", "--file", "x"], /^requeue: a body and --file do not go together/],
    ["send --file nowhere.json", [], /^requeue: --file: .*ENOENT.* 'nowhere\.json'\. Give a file that can be read$/],
    ["send -H tenant", ["1"], /^requeue: --header: tenant has no value\. Write name=value$/],
    ["send -q other", ["1"], /^requeue: a message goes to one queue\. Give --queue once$/],
    ["send --delay 2d", ["1"], /must be a duration up to 1d/],
    ["dead-letters redrive --limit 0", [], /--limit/],
    ["dead-letters redrive --rate 0", [], /--rate/],
    ["dead-letters redrive --rate 0.0001", [], /--rate/],
    ["dead-letters redrive --stages 1,0", [], /--stages/],
    ["dead-letters redrive --stages", [], /--stages/],
    ["dead-letters redrive --stop-at 10", [], /--stop-at/],
    ["dead-letters redrive --stop-at 110%", [], /--stop-at/],
    ["dead-letters redrive --wait 2d", [], /--wait/],
    ["dead-letters redrive --operation a:b", [], /--operation/],
    ["dead-letters redrive --audit=", [], /--audit/],
    ["dead-letters purge --all --audit=", [], /--audit/],
    ...["purge --all --yes", "redrive", "park"].map(
      (command) =>
        [
          `dead-letters ${command} --force b`,
          [],
          /^requeue: --force: this command does not act on the dead-letter queue b\. Give --dlq b, or leave --force out$/
        ] as const
    ),
    ["dead-letters list --limit 0", [], /--limit/],
    ["dead-letters list --older-than soon", [], /--older-than/],
    ["dead-letters list --since soon", [], /--since/],
    ["dead-letters list --since 2026-13-01", [], /--since/],
    ["dead-letters list --reason bad", [], /--reason/]
  ])("%s %j", async (command, args, message) => {
    const { code, stderr, stdout } = await requeue([...command.split(" "), ...broker, ...args])
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.strictEqual(stderr.trimEnd().split("\n").length, 1)
    assert.match(stderr.trimEnd(), message)
  })
})

/** A broker in memory has no queue yet. That of a command is its own, which a line before says. */
describe("a queue that the broker does not have is refused", () => {
  it.each([
    ...[
      "list",
      "group",
      "peek",
      "redrive --dry-run",
      "redrive --yes",
      "purge --all --yes",
      "purge --id x --dry-run"
    ].map((command) => [`dead-letters ${command}`, "missing.dlq"] as const),
    ["dead-letters export", "missing.dlq"] as const,
    ...["list", "count", "count --error x", "purge --all --dry-run", "purge --all --yes"].map(
      (command) => [`delayed ${command}`, "missing"] as const
    )
  ])("by %s", async (command, queue) => {
    const { code, stderr, stdout } = await requeue([...command.split(" "), "--url", "memory:", "--queue", "missing"])
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(
      stderr,
      new RegExp(`^requeue: memory: find on queue ${queue}: QueueMissing: there is no such queue\\.`, "m")
    )
  })

  it("and a pause of a broker that has none says what to do instead", async () => {
    const { code, stderr } = await requeue(["pause", "--url", "memory:", "--queue", "any"])
    assert.strictEqual(code, 1)
    assert.match(stderr, /Unsupported.*Stop the queue's consumers/)
  })
})

describe("requeue", () => {
  it("alone shows its commands", async () => {
    const { code, stdout } = await requeue([])
    assert.strictEqual(code, 2)
    assert.match(stdout, /SUBCOMMANDS[^]*\n +check /)
  })

  it("shows no colours where nobody sees them", async () => {
    const { stdout } = await requeue(["--help"])
    assert.notInclude(stdout, "\u001b")
  })
})
