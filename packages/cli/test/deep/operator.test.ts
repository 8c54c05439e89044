/** What operators do to a running system, against a real RabbitMQ. The sessions in test/sessions/dead-letters.md are the rest. */
import { deadLetters } from "@requeue/operations/promise"
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { proxy } from "@requeue/brokers"
import { connect, PermanentError, type Requeue } from "@requeue/core/promise"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { clear, rabbitmq } from "../real/brokers.ts"
import { type Circumstances, program, quoted, requeue, spawned } from "../requeue.ts"
import { deadline, until } from "../until.ts"

const queues = (
  "sent later counted away meant moved elsewhere purged taken awaited browsed causes misled kept spoilt audited " +
  "unwritable edited full whole there"
).split(" ")

let url = ""
let connection: Requeue

beforeAll(async () => {
  url = (await rabbitmq()).url
  connection = await connect(url, { logLevel: "None" })
  for (const queue of queues) {
    for (const name of [queue, `${queue}.dlq`]) await clear(connection, name)
  }
})

afterAll(() => connection.close())

const run = (args: string, queue: string, ...rest: ReadonlyArray<string>) =>
  requeue([...args.split(" "), "--url", url, "--queue", queue, ...rest])

const runIn = (args: string, queue: string, circumstances: Circumstances, runner = requeue) =>
  runner([...args.split(" "), "--url", url, "--queue", queue], circumstances)

const json = async (args: string, queue: string) => {
  const { code, stderr, stdout } = await run(`${args} --json`, queue)
  assert.deepStrictEqual([code, stderr], [0, ""])
  return JSON.parse(stdout)
}

const everyThird = (n: number) => (n % 3 === 0 ? new PermanentError("never") : new Error("503"))

/** Dead letters 0 to n - 1. Default: every third one is permanent. */
const bury = async (queue: string, count: number, errorOf: (n: number) => Error = everyThird) => {
  let left = count
  const all = Promise.withResolvers<void>()
  const worker = await connection.consume<number>(
    queue,
    { retry: { maxRetries: 0 }, onEvent: ({ _tag }) => _tag === "DeadLettered" && --left === 0 && all.resolve() },
    ({ body }) => {
      throw errorOf(body)
    }
  )
  const entries = Array.from({ length: count }, (_, body) => ({ body, id: `${queue}-${body}` }))
  await connection.sendBatch(queue, entries)
  await all.promise
  await worker.drain()
}

/** The broker by a connection that can be broken. */
const through = async (address: string) => {
  const target = new URL(address)
  const wire = await proxy(Number(target.port))
  target.port = String(wire.port)
  return { ...wire, url: target.href, [Symbol.asyncDispose]: () => wire.close() }
}

const ready = async (queue: string) => (await connection.counts(queue)).ready

/** A quorum queue counts what it has a moment later. */
const settled = (queue: string, count: number) =>
  vi.waitFor(async () => assert.strictEqual(await ready(queue), count, `what waits in ${queue}`), {
    timeout: deadline
  })

describe.concurrent("requeue send", () => {
  it("sends an argument, a file, or what comes on standard input", async () => {
    const file = `requeue-${process.pid}.json`
    writeFileSync(join(tmpdir(), file), '{"from":"file"}')
    const sent = await run("send --id one -H tenant=a -H x=1=2", "sent", '{"from":"argument"}')
    assert.deepStrictEqual([sent.code, sent.stdout, sent.stderr], [0, "sent one to sent\n", ""])
    await runIn(`send --file ${file}`, "sent", { cwd: tmpdir() })
    await runIn("send", "sent", { input: '{"from":"input"}' }, program)
    await run("send --raw", "sent", "no json")
    const letters = await deadLetters(connection, "sent").list()
    assert.deepStrictEqual(
      letters.map(({ body }) => new TextDecoder().decode(body)),
      ['{"from":"argument"}', '{"from":"file"}', '{"from":"input"}', "no json"]
    )
    assert.deepStrictEqual(letters[0]?.headers, { "content-type": "application/json", tenant: "a", x: "1=2" })
    assert.deepStrictEqual(letters[3]?.headers, {})
  })

  it("sends later", async () => {
    const before = performance.now()
    await run("send --delay 2s", "later", "1")
    const came = Promise.withResolvers<number>()
    await using _worker = await connection.consume("later", {}, () => came.resolve(performance.now()))
    assert.isAtLeast((await came.promise) - before, 2000)
  })
})

describe.concurrent("requeue status", () => {
  it("counts", async () => {
    await bury("counted", 2)
    await connection.send("counted", 1)
    await settled("counted", 1)
    await settled("counted.dlq", 2)
    const { broker, queues } = await json("status", "counted")
    assert.strictEqual(broker, "amqp")
    const [{ delayed, oldest, remarks, undelivered, ...counted }] = queues
    assert.deepStrictEqual(counted, {
      queue: "counted",
      ready: 1,
      inFlight: 0,
      backoff: counted.backoff,
      dead: { "counted.dlq": 2 },
      quarantined: null,
      consumers: 0,
      missing: false,
      paused: false
    })
    // Others send with delays to the same server.
    assert.isAtLeast(delayed, 0)
    assert.isAtLeast(undelivered, 0)
    assert.isNull(oldest)
    assert.includeMembers(Object.keys(remarks), ["delayed", "oldest", "quarantined"])
  })

  it("says once below the table why a number is unknown", async () => {
    for (const queue of ["explained", "another"]) {
      await connection.send(queue, 1)
      await settled(queue, 1)
    }
    const { stdout } = await run("status -q another", "explained")
    for (const queue of ["explained", "another"]) assert.match(stdout, new RegExp(`^${queue} +1 `, "m"))
    assert.lengthOf(stdout.match(/^- oldest: .*management interface$/gm) ?? [], 1)
  })

  it("does not tell zeros of a queue that is not there", async () => {
    await connection.send("there", 1)
    await settled("there", 1)
    const missing = `missing-${process.pid}`
    const shown = await run(`status -q ${missing}`, "there")
    assert.strictEqual(shown.code, 1)
    assert.match(shown.stdout, /^there +1 /m)
    assert.match(shown.stdout, new RegExp(`^${missing} \\(missing\\) +- +- +\\d`, "m"))
    assert.match(shown.stderr, /^requeue: rabbitmq: find on queue missing-\d+: QueueMissing: there is no such queue\./m)
    const told = JSON.parse((await run("status --json", missing)).stdout)
    const { consumers, inFlight, missing: isMissing, oldest, ready } = told.queues[0]
    assert.deepStrictEqual([isMissing, ready, inFlight, consumers, oldest], [true, null, null, null, null])
    assert.strictEqual((await connection.counts(missing)).isMissing, true)
  })
})

it.concurrent("requeue status --watch waits for a broker that is away", async () => {
  await using wire = await through(url)
  const interruption = async (said: () => string) => {
    /** From now on. */
    const says = (what: RegExp) => {
      const before = said().length
      return until(`a line with ${what.source}`, () => what.test(said().slice(before)))
    }
    await says(/dead: (0|missing) .*\n/)
    wire.refuse(true)
    wire.cut()
    await says(/(ConnectionLost|ConnectionFailed|Timeout).*\n/)
    wire.refuse(false)
    await says(/dead: (0|missing) .*\n/)
  }
  const impatient = new URL(wire.url)
  impatient.searchParams.set("requestTimeout", "2000")
  const args = ["status", "--watch", "--interval", "200ms", "--url", impatient.href, "--queue", "away"]
  const { code } = await requeue(args, { interruption })
  assert.strictEqual(code, 130)
})

// One after the other: two looks at the same time each see a part.
describe("requeue delayed", () => {
  const send = (queue: string, ids: ReadonlyArray<string>, delay: string) =>
    connection.sendBatch(
      queue,
      ids.map((id) => ({ id, body: { id }, delay: delay as "1 hour" })) // One of the delays of these tests.
    )
  const listed = async (args: string, queue: string) => {
    const { queues } = await json(`delayed list ${args}`, queue)
    return queues[0].messages.map(({ id }: { id: string }) => id)
  }

  it("lists, counts and removes those that are meant, and no others", async () => {
    await send("later", ["a", "b"], "1 hour")
    await send("later", ["c"], "2 hours")
    assert.deepStrictEqual((await listed("--limit 9", "later")).toSorted(), ["a", "b", "c"])
    assert.deepStrictEqual(await listed("--due-after 90m", "later"), ["c"])
    assert.deepStrictEqual(await listed("--id a --id c --due-within 90m", "later"), ["a"])
    assert.lengthOf(await listed("--limit 2", "later"), 2)
    assert.deepInclude(await run("delayed count --error no", "later"), { code: 0, stdout: "later: 0\n" })
    const asked = await run("delayed purge --id a", "later")
    assert.deepStrictEqual([asked.code, asked.stdout], [2, ""])
    assert.deepInclude(await run("delayed purge --id a --dry-run", "later"), { stdout: "later: would remove 1\n" })
    assert.deepInclude(await run("delayed purge --id a --yes", "later"), { code: 0, stdout: "later: removed 1\n" })
    assert.deepStrictEqual((await listed("--limit 9", "later")).toSorted(), ["b", "c"])
    assert.match((await run("delayed purge --yes", "later")).stderr, /nothing says which delayed messages to remove/)
    assert.deepInclude(await run("delayed purge --all --yes", "later"), { stdout: "later: removed 2\n" })
    assert.deepInclude(await run("delayed count", "later"), { stdout: "later: 0\n" })
  })
})

describe.concurrent("requeue dead-letters", () => {
  it("lists, groups and shows those that are meant", async () => {
    await bury("meant", 7)
    const ids = async (args: string) => {
      const { queues } = await json(`dead-letters list ${args}`, "meant")
      return queues[0].letters.map(({ id }: { id: string }) => id)
    }
    assert.deepStrictEqual(await ids("--reason permanent"), ["meant-0", "meant-3", "meant-6"])
    assert.deepStrictEqual(await ids("--error 503 --limit 2"), ["meant-1", "meant-2"])
    assert.deepStrictEqual(await ids("--id meant-5 --id meant-0"), ["meant-0", "meant-5"])
    assert.deepStrictEqual(await ids("--older-than 1h"), [])
    const { queues } = await json("dead-letters group --newer-than 1h", "meant")
    assert.deepStrictEqual(
      queues[0].groups.map(({ count, error, reason }: any) => [count, reason, error]),
      [
        [4, "retries-exhausted", "Error"],
        [3, "permanent", "PermanentError"]
      ]
    )
    assert.deepInclude(queues[0], { browsed: 7, total: 7, other: 0 })
    const peeked = await json("dead-letters peek --id meant-4", "meant")
    const absent = await run("dead-letters peek --id nope", "meant")
    assert.deepStrictEqual([absent.code, absent.stderr.includes("no dead letter matches --id nope")], [1, true])
    const [letter] = peeked.queues[0].letters
    assert.deepStrictEqual([letter.body, letter.origin.queue, letter.redrives], [4, "meant", 0])
  })

  it("tells causes apart, and of how many letters it tells", async () => {
    const refused = Array.from({ length: 6 }, (_, n) => new Error(`connect ECONNREFUSED 10.0.0.${n}:5432`))
    const down = [1, 2, 3].map((n) => new Error(`order ${n}: HTTP 503`))
    const errors = [...refused, ...down, new PermanentError("card number is invalid")]
    await bury("causes", errors.length, (n) => errors[n]!)
    await settled("causes.dlq", 10)
    const { queues } = await json("dead-letters group", "causes")
    assert.deepStrictEqual(
      queues[0].groups.map(({ count, pattern }: any) => [count, pattern]),
      [
        [6, "connect ECONNREFUSED <addr>"],
        [3, "order <num>: HTTP 503"],
        [1, "card number is invalid"]
      ]
    )
    for (const { id, message } of queues[0].groups) {
      assert.strictEqual(message, errors[Number(id.replace("causes-", ""))]?.message)
    }
    const { stdout } = await run("dead-letters group --error econnrefused", "causes")
    const [heading, , row, ...others] = stdout.trimEnd().split("\n")
    assert.strictEqual(heading, "causes.dlq: browsed 10 of 10 dead letters, 6 of them match the filters")
    assert.match(
      row!,
      /^6 .* Error: connect ECONNREFUSED <addr> .* causes-(\d): connect ECONNREFUSED 10\.0\.0\.\1:5432$/
    )
    assert.isEmpty(others)
  })

  it("redrives so many, elsewhere, of a queue by its own name", async () => {
    await bury("moved", 5)
    const args = ["dead-letters", "redrive", "--url", url, "--dlq", "moved.dlq", "--to", "elsewhere", "--limit", "3"]
    const { code, stdout } = await requeue([...args, "--create", "--yes"])
    assert.deepStrictEqual([code, stdout], [0, "moved.dlq: redriven 3 of 5; 2 not reached\n"])
    await settled("elsewhere", 3)
    await settled("moved.dlq", 2)
  })

  it("writes who did what into the audit, and does nothing without it", async () => {
    const file = join(tmpdir(), `requeue-audit-${process.pid}.jsonl`)
    await bury("audited", 6)
    const args = ["--audit", file, "--operator", "ada", "--json"]
    const { code } = await run(
      "dead-letters redrive --error 503 --to elsewhere-audited --create --yes",
      "audited",
      ...args
    )
    appendFileSync(file, '{"torn":')
    await run("dead-letters purge --reason permanent --since 1d --header content-type --yes", "audited", ...args)
    const all = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .filter((line) => line !== '{"torn":')
      .map((line) => JSON.parse(line))
    const lines = all.filter(({ event }) => event !== "letter")
    assert.strictEqual(code, 0)
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    assert.deepStrictEqual(
      lines.map(({ command, event, operator }) => [event, operator, command]),
      [
        ["begin", "ada", "dead-letters redrive"],
        ["end", "ada", "dead-letters redrive"],
        ["begin", "ada", "dead-letters purge"],
        ["end", "ada", "dead-letters purge"]
      ]
    )
    const [begun, ended, meant, purged] = lines
    assert.deepStrictEqual([begun.broker, begun.queues, begun.filters], ["amqp", ["audited.dlq"], { error: "503" }])
    assert.strictEqual(begun.options.to, "elsewhere-audited")
    assert.strictEqual(begun.operation, ended.operation)
    assert.deepStrictEqual([ended.outcome, ended.queues[0].redriven], ["done", 4])
    assert.deepStrictEqual(meant.filters, {
      reason: ["permanent"],
      header: ["content-type"],
      since: { ago: 86_400_000 }
    })
    assert.deepStrictEqual([purged.outcome, purged.queues], ["done", [{ queue: "audited.dlq", removed: 2 }]])
    const letters = all.filter(({ event }) => event === "letter")
    assert.sameDeepMembers(
      letters.map(({ operation, letter, operator, to }) => [operation, letter, operator, to]),
      [0, 1, 2, 3, 4, 5].map((n) => {
        const [by, to] = n % 3 === 0 ? [meant.operation, undefined] : [begun.operation, "elsewhere-audited"]
        return [by, `audited-${n}`, "ada", to]
      })
    )
    rmSync(file)
  })

  it("does nothing that it cannot write into the audit", async () => {
    await bury("unwritable", 2)
    const args = ["--audit", join(tmpdir(), "no", "such", "folder"), "--yes"]
    for (const command of ["redrive", "purge --all"]) {
      const { code, stderr } = await run(`dead-letters ${command}`, "unwritable", ...args)
      assert.strictEqual(code, 2)
      assert.match(
        stderr,
        /^requeue: --audit: ENOENT.*\. Nothing was done\. Give --audit a file that can be written\n$/
      )
    }
    await settled("unwritable.dlq", 2)
  })

  it("edits a letter, and changes nothing where that is wrong", async () => {
    await bury("edited", 2, () => new Error("no"))
    const seen: Array<unknown> = []
    await using _worker = await connection.consume("edited", {}, ({ body, id }) => void seen.push([id, body]))
    const edit = (EDITOR: string, ...rest: ReadonlyArray<string>) =>
      runIn(`dead-letters redrive --edit --yes ${rest.join(" ")}`.trim(), "edited", { env: { EDITOR, VISUAL: "" } })
    for (const [editor, args, code, said] of [
      ["true", ["--id", "edited-0"], 0, /^nothing was changed\n$/],
      ["sed -i s/^0$/{/", ["--id", "edited-0"], 2, /the body is not JSON.*What you wrote is in .*letter\.txt$/m],
      ["false", ["--id", "edited-0"], 2, /the editor false ended with 1\. Nothing was changed/],
      ["true", [], 2, /several letters match/],
      ["true", ["--id", "other"], 2, /no letter matches/],
      ["true", ["--id", "edited-0", "--limit", "1"], 2, /--edit and --limit do not go together/]
    ] as const) {
      const ended = await edit(editor, ...args)
      assert.strictEqual(ended.code, code)
      assert.match(ended.both, said)
    }
    assert.strictEqual(await deadLetters(connection, "edited.dlq").count(), 2)
    const { code, stderr, stdout } = await edit("sed -i s/^0$/7/", "--id", "edited-0", "--wait", "1s")
    // Without the management interface nobody knows what is in work, so that the original stays.
    assert.deepStrictEqual(
      [code, stdout],
      [
        0,
        "edited.dlq: edited-0: the copy is published, and the broker does not report its outcome; the original is kept\n"
      ]
    )
    assert.match(stderr, /^requeue: note: .*Give the option management, the address of the management interface\n$/)
    assert.deepStrictEqual(seen, [["edited-0", 7]])
    await settled("edited.dlq", 2)
  })

  it("removes nothing unless it may", async () => {
    await bury("purged", 2)
    const refused = await run("dead-letters purge --all", "purged")
    assert.deepStrictEqual([refused.code, refused.stdout], [2, ""])
    assert.match(refused.stderr, /^requeue: there is no terminal to ask for confirmation\. Give --yes/)
    const unsaid = await run("dead-letters purge --yes", "purged")
    assert.deepStrictEqual([unsaid.code, unsaid.stdout], [2, ""])
    assert.match(
      unsaid.stderr,
      /^requeue: nothing says which dead letters of purged\.dlq to remove\. Give --all, or a filter/
    )
    assert.strictEqual((await json("dead-letters purge --all --dry-run", "purged")).queues[0].removed, 2)
    assert.strictEqual((await json("dead-letters purge --yes --reason permanent", "purged")).queues[0].removed, 1)
    assert.deepStrictEqual(
      (await deadLetters(connection, "purged.dlq").list()).map(({ id }) => id),
      ["purged-1"]
    )
    assert.strictEqual((await json("dead-letters purge --all --yes", "purged")).queues[0].removed, 1)
    assert.strictEqual((await json("dead-letters purge --all --dry-run", "purged")).queues[0].removed, 0)
  })
})

describe.concurrent("queues that are missing", () => {
  const missing = `missing-${process.pid}`

  it("are no place to redrive to, nor is the dead-letter queue itself", async () => {
    await bury("misled", 2)
    const { code, stderr, stdout } = await run(`dead-letters redrive --yes --to ${missing}`, "misled")
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(stderr, /there is no such queue\..* Give --create to create a queue that no consumer reads yet$/m)
    assert.strictEqual((await connection.counts(missing)).isMissing, true)
    const aside = `${missing}-aside`
    const lost = await run(`dead-letters park --yes --to ${aside}`, "misled")
    assert.match(lost.stderr, /Give --create to create a queue that no consumer reads yet$/m)
    const made = await run(`dead-letters park --yes --create --to ${aside}`, "misled")
    assert.deepStrictEqual([made.code, made.stdout], [0, "misled.dlq: parked 2 of 2\n"])
    assert.strictEqual((await connection.counts(aside)).ready, 2)
    const back = await requeue(`dead-letters park --yes --dlq ${aside} --to misled.dlq --url ${url}`.split(" "))
    assert.strictEqual(back.code, 0)
    const itself = await run("dead-letters redrive --yes --to misled.dlq", "misled")
    assert.strictEqual(itself.code, 2)
    assert.match(
      itself.stderr,
      /^requeue: --to: misled\.dlq is the dead-letter queue itself\. Give another queue with --to$/m
    )
    await settled("misled.dlq", 2)
  })
})

describe.concurrent("requeue dead-letters export and import", () => {
  it("write letters, leave them there, and make the same again", async () => {
    await bury("kept", 7)
    const file = `requeue-${process.pid}.jsonl`
    const where = { cwd: mkdtempSync(join(tmpdir(), "requeue-")) }
    const before = await deadLetters(connection, "kept.dlq").list()
    const exported = await runIn(`dead-letters export -o ${file}`, "kept", where)
    assert.deepStrictEqual([exported.code, exported.stdout], [0, "kept.dlq: exported 7 of 7 dead letters\n"])
    const again = await runIn(`dead-letters export -o ${file}`, "kept", where)
    assert.deepStrictEqual([again.code, /EEXIST.*Give a new file/.test(again.stderr)], [2, true])
    await settled("kept.dlq", 7)
    assert.strictEqual((await run("dead-letters purge --all --yes", "kept")).code, 0)
    const imported = await requeue(["dead-letters", "import", file, "--url", url], where)
    assert.deepStrictEqual([imported.code, imported.stdout], [0, "kept.dlq: imported 7\n"])
    const after = await deadLetters(connection, "kept.dlq").list()
    const plain = (letters: typeof before) =>
      letters.map(({ body, headers, metadata }) => ({ body, headers, metadata }))
    assert.deepStrictEqual(plain(after), plain(before))
  })

  it("say which line is bad, and what was imported until then", async () => {
    await bury("spoilt", 3)
    const { stdout } = await run("dead-letters export", "spoilt")
    const [first, second, third] = stdout.split("\n")
    const input = [first, "", second, '{"queue":"spoilt.dlq"}', third].join("\n")
    const args = ["dead-letters", "import", "--url", url]
    const { code, stdout: told } = await requeue(args, { input })
    assert.deepStrictEqual(
      [code, told],
      [
        1,
        'spoilt.dlq: imported 2\nline 4: body must be text, or {"base64": …}\nLines before 4 are imported. Give --from-line 4 to go on\n'
      ]
    )
    const rest = await requeue([...args, "--from-line", "5"], { input })
    assert.deepStrictEqual([rest.code, rest.stdout], [0, "spoilt.dlq: imported 1\n"])
    await settled("spoilt.dlq", 6)
  })

  it("say how far an export came whose output cannot be written, and give all back", async () => {
    await bury("full", 300)
    const of = (command: string, to: string) =>
      spawned("bash", ["-c", `set -o pipefail; ${quoted} dead-letters ${command} --url '${url}' -q full ${to}`])
    const full = await of("export", "> /dev/full")
    assert.deepStrictEqual([full.code, full.stdout], [1, ""])
    assert.match(
      full.stderr,
      /^requeue: standard output: ENOSPC: .*\. full\.dlq: exported 0, and the line after them may be incomplete\. All letters are still in their queues\n$/
    )
    await settled("full.dlq", 300)
    // Only a reader that ends before the last write is known to have missed something.
    const gone = await of("export", "| true")
    assert.strictEqual(gone.code, 1)
    assert.match(gone.stderr, /^requeue: standard output: .*EPIPE.*full\.dlq: exported \d+, /)
    await settled("full.dlq", 300)
    for (const look of ["list", "peek", "group", "list --json"]) {
      const { code, stderr } = await of(look, "| true")
      assert.deepStrictEqual([code, stderr], [0, ""], look)
      const full = await of(look, "> /dev/full")
      assert.strictEqual(full.code, 1)
      assert.match(full.stderr, /^.*standard output: ENOSPC: .*\n$/, look)
    }
    await settled("full.dlq", 300)
  })

  it("make a file only when it is whole", async () => {
    await bury("whole", 30)
    const where = { cwd: mkdtempSync(join(tmpdir(), "requeue-")) }
    const missing = await runIn("dead-letters export -o none/a.jsonl", "whole", where)
    assert.deepStrictEqual([missing.code, /ENOENT.*Give a new file/.test(missing.stderr)], [2, true])
    // A file of one block at most.
    const args = `dead-letters export --url '${url}' -q whole -o a.jsonl`
    const limited = await spawned("bash", ["-c", `trap '' XFSZ; ulimit -f 1; ${quoted} ${args}`], where)
    assert.strictEqual(limited.code, 1)
    assert.match(
      limited.stderr,
      /^requeue: --output: .*EFBIG.*\. a\.jsonl was not created\. All letters are still in their queues\n$/
    )
    assert.deepStrictEqual(readdirSync(where.cwd), [])
    const whole = await runIn("dead-letters export -o a.jsonl", "whole", where)
    assert.deepStrictEqual([whole.code, readdirSync(where.cwd)], [0, ["a.jsonl"]])
  })
})

describe.concurrent("requeue tail", () => {
  it("takes so many messages and no more", async () => {
    await connection.sendBatch("taken", [{ body: 1, id: "a" }, { body: 2 }, { body: 3 }])
    const { code, stdout } = await run("tail --take --limit 2 --json", "taken")
    assert.strictEqual(code, 0)
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.deepStrictEqual(
      lines.map(({ body }) => body),
      [1, 2]
    )
    assert.strictEqual(lines[0].id, "a")
    await settled("taken", 1)
  })

  it("takes what comes, until it is interrupted", async () => {
    await connection.send("awaited", 1)
    const interruption = async (said: () => string) => {
      await until("the first message", () => said().includes("\n"))
      await connection.send("awaited", 2)
      await until("the second message", () => said().split("\n").length > 2)
    }
    const { code, stdout } = await runIn("tail --take", "awaited", { interruption })
    assert.strictEqual(code, 130)
    assert.match(stdout, /^\S+ {2}awaited {2}\S+ {2}attempt 1 {2}1\n\S+ {2}awaited {2}\S+ {2}attempt 1 {2}2\n$/)
  })

  it("shows dead letters where the broker lets it look, and else says what to do", async () => {
    await bury("looked", 2)
    const { code, stderr, stdout } = await run("tail --dead --limit 2", "looked")
    if (code === 0) assert.match(stdout, /looked\.dlq {2}looked-0 {2}permanent {2}0\n.*retries-exhausted {2}1\n$/)
    else assert.match(stderr, /^requeue: rabbitmq cannot show messages without taking them\. Give --take/)
  })
})
