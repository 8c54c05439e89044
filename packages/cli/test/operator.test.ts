/** What operators do to a running system, against a real RabbitMQ. The sessions in docs/dead-letters.md are the rest. */
import { writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { proxy } from "@requeue/brokers"
import { connect, PermanentError, type Requeue } from "@requeue/core/promise"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { rabbitmq } from "./brokers.ts"
import { type Circumstances, program, requeue } from "./requeue.ts"
import { deadline, until } from "./until.ts"

const queues =
  "sent later refused counted watched away meant moved elsewhere interrupted purged taken awaited looked causes".split(
    " "
  )

let url = ""
let connection: Requeue

beforeAll(async () => {
  url = (await rabbitmq()).url
  connection = await connect(url, { logLevel: "None" })
  // On a server that others use as well, an earlier run may have left something.
  for (const queue of queues) {
    for (const name of [queue, `${queue}.dlq`]) await connection.deadLetters(name).purge({ all: true })
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
    const letters = await connection.deadLetters("sent").list()
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

  it.each([
    ["send", ["no json"], /^requeue: the body is not JSON, and .*or give --raw$/],
    ["send", ["1", "--file", "x"], /^requeue: a body and --file do not go together/],
    ["send --file nowhere.json", [], /^requeue: --file: .*ENOENT.* 'nowhere\.json'\. Give a file that can be read$/],
    ["send -H tenant", ["1"], /^requeue: --header: tenant has no value\. Write name=value$/],
    ["send -q other", ["1"], /^requeue: a message goes to one queue\. Give --queue once$/],
    ["send --delay 2d", ["1"], /must be a duration up to 1d/]
  ])("refuses %s %j", async (args, rest, message) => {
    const { code, stderr, stdout } = await run(args, "refused", ...rest)
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr.trimEnd(), message)
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

  it("goes on with --watch until it is interrupted", async () => {
    const interruption = (said: () => string) => until("three looks", () => said().split("\n").length > 3)
    const args = "status --watch --interval 200ms --json"
    const { code, stdout } = await runIn(args, "watched", { interruption }, program)
    assert.strictEqual(code, 130)
    const looks = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.isAtLeast(looks.length, 3)
    assert.deepStrictEqual(looks.at(-1).queues[0].dead, { "watched.dlq": 0 })
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
    await says(/dead: 0 .*\n/)
    wire.refuse(true)
    wire.cut()
    await says(/(ConnectionLost|ConnectionFailed|Timeout).*\n/)
    wire.refuse(false)
    await says(/dead: 0 .*\n/)
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
    assert.deepInclude(await run("delayed purge --yes", "later"), { stdout: "later: removed 2\n" })
    assert.deepInclude(await run("delayed count", "later"), { stdout: "later: 0\n" })
  })

  it("shows when a message is due, and which attempt that is", async () => {
    await send("shown", ["a"], "1 hour")
    const { stdout } = await run("delayed list", "shown")
    assert.match(
      stdout,
      /^shown: 1 of 1 delayed messages\nid +due in +next attempt +last error +age\na +(1h|59m.*?) +1 +- /
    )
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
    assert.deepInclude(queues[0], { looked: 7, total: 7, other: 0 })
    const peeked = await json("dead-letters peek --id meant-4", "meant")
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
    assert.strictEqual(heading, "causes.dlq: looked at 10 of 10 dead letters, 6 of them meant by the filters")
    assert.match(
      row!,
      /^6 .* Error: connect ECONNREFUSED <addr> .* causes-(\d): connect ECONNREFUSED 10\.0\.0\.\1:5432$/
    )
    assert.isEmpty(others)
  })

  it("redrives so many, elsewhere, of a queue by its own name", async () => {
    await bury("moved", 5)
    const args = ["dead-letters", "redrive", "--url", url, "--dlq", "moved.dlq", "--to", "elsewhere", "--limit", "3"]
    const { code, stdout } = await requeue([...args, "--yes"])
    assert.deepStrictEqual([code, stdout], [0, "moved.dlq: redriven 3 of 5; 2 not reached\n"])
    await settled("elsewhere", 3)
    await settled("moved.dlq", 2)
  })

  it("stops at once when it is interrupted, and says where every letter is", async () => {
    await bury("interrupted", 300)
    const interruption = () => until("three redriven letters", async () => ((await ready("interrupted")) ?? 0) > 2)
    const args = "dead-letters redrive --rate 5 --yes"
    const { code, stderr, stdout } = await runIn(args, "interrupted", { interruption }, program)
    assert.deepStrictEqual([code, stdout], [130, ""])
    const said =
      /^requeue: interrupted\. interrupted\.dlq: redriven (\d+) of 300; (\d+) not reached\n$/.exec(stderr) ?? []
    const [, redriven, others] = said.map(Number)
    assert.isAtLeast(redriven ?? 0, 3)
    assert.strictEqual(redriven! + others!, 300)
    await settled("interrupted", Number(redriven))
    await settled("interrupted.dlq", 300 - Number(redriven))
  })

  it("removes nothing unless it may", async () => {
    await bury("purged", 2)
    const refused = await run("dead-letters purge", "purged")
    assert.deepStrictEqual([refused.code, refused.stdout], [2, ""])
    assert.match(refused.stderr, /^requeue: there is no terminal on which to ask\. Give --yes/)
    assert.strictEqual((await json("dead-letters purge --dry-run", "purged")).queues[0].removed, 2)
    assert.strictEqual((await json("dead-letters purge --yes --reason permanent", "purged")).queues[0].removed, 1)
    assert.deepStrictEqual(
      (await connection.deadLetters("purged.dlq").list()).map(({ id }) => id),
      ["purged-1"]
    )
    assert.strictEqual((await json("dead-letters purge --yes", "purged")).queues[0].removed, 1)
    assert.strictEqual((await json("dead-letters purge --dry-run", "purged")).queues[0].removed, 0)
  })

  it.each([
    "redrive --limit 0",
    "redrive --rate 0",
    "redrive --rate 0.0001",
    "list --limit 0",
    "list --older-than soon",
    "list --reason bad"
  ])("refuses %s", async (args) => {
    const { code, stderr, stdout } = await run(`dead-letters ${args}`, "refused")
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.strictEqual(stderr.trimEnd().split("\n").length, 1)
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
