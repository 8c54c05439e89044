/** Campaigns: what they refuse, what they keep in a file, and what the command says. */
import { execFile } from "node:child_process"
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Campaign from "../src/Campaign.ts"
import * as Arguments from "../src/cli/Arguments.ts"
import * as Report from "../src/cli/Report.ts"
import * as Fingerprint from "../src/Fingerprint.ts"
import * as Generate from "../src/Generate.ts"
import * as Results from "../src/Results.ts"
import * as ScenarioFile from "../src/ScenarioFile.ts"

let folder = ""
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "simulation-"))))
afterAll(() => rmSync(folder, { recursive: true }))

const small = { seeds: 2, kinds: ["rabbitmq"], workers: 1 } as const

describe("a campaign refuses", () => {
  it.each<[object, string]>([
    [{ seeds: -5 }, "seeds must be a whole number >= 1, got -5"],
    [{ seeds: Number.NaN }, "seeds must be a whole number >= 1, got NaN"],
    [{ from: 0.5 }, "from must be a whole number >= 0, got 0.5"],
    [{ from: "1" }, 'from must be a whole number >= 0, got "1"'],
    [{ kinds: [] }, "kinds must name at least one kind, got none"],
    [{ kinds: undefined }, "kinds must be an array, got undefined"],
    [
      { kinds: ["rabitmq"] },
      'kinds[0] must be one of "rabbitmq", "sqs", "nsq", "sqlite", got "rabitmq". Did you mean "rabbitmq"?'
    ],
    [{ workers: 0 }, "workers must be a whole number from 1 to 1000, got 0"],
    [{ chunk: 0 }, "chunk must be a whole number >= 1, got 0"],
    [{ chunks: 5 }, "unknown option chunks. Did you mean chunk?"],
    [{ onChunk: "log" }, 'onChunk must be a function, got "log"']
  ])("%j", async (change, message) => {
    await expect(Campaign.run({ ...small, ...change })).rejects.toThrow(new RangeError(`Campaign.run: ${message}`))
  })
})

const result = (from: number) => ({
  from,
  count: 1,
  kinds: ["rabbitmq" as const],
  seeds: { rabbitmq: 1 },
  facts: 10,
  cpu: 1,
  seen: {},
  failures: []
})

it("the fingerprint is of all packages that worlds run", () => {
  const names = Fingerprint.folders().map((folder) => basename(dirname(folder)))
  const adapters = ["nsq", "rabbitmq", "sqlite", "sqs"].map((name) => `adapter-${name}`)
  expect(names.toSorted()).toEqual([...adapters, "core", "kit", "operations", "simulation"])
})

describe("a file of results", () => {
  it("knows the chunks of this code alone, and ignores all that is no result", () => {
    const file = join(folder, "known.jsonl")
    const lines = [
      { code: "mine", ...result(1) },
      { code: "other", ...result(2) },
      result(3),
      null,
      { code: "mine", from: 4 }
    ]
    writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"code":"mine","fr`)
    const results = Results.open(file, "mine")
    expect([...results.known]).toEqual([["1 1 rabbitmq", { code: "mine", ...result(1) }]])
    expect(results.others).toBe(2)
    results.append(result(5))
    results.close()
    const again = Results.open(file, "mine")
    again.close()
    expect([...again.known.keys()]).toEqual(["1 1 rabbitmq", "5 1 rabbitmq"])
  })

  it("lets a campaign go on where it was", async () => {
    const file = join(folder, "goes-on.jsonl")
    const options = { ...small, seeds: 3, chunk: 2, file }
    const first = await Campaign.run(options)
    expect(readFileSync(file, "utf8").split("\n").length).toBe(3)
    expect(await Campaign.run(options)).toEqual(first)
    expect(readFileSync(file, "utf8").split("\n").length).toBe(3)
  })

  it("that cannot be written ends a campaign before any seed is run", async () => {
    await expect(Campaign.run({ ...small, seeds: 1e9, file: join(folder, "no", "a.jsonl") })).rejects.toThrow("ENOENT")
  })
})

it("a campaign ends with what its caller throws", async () => {
  const onChunk = (): never => {
    throw new Error("enough")
  }
  await expect(Campaign.run({ ...small, seeds: 4, chunk: 1, workers: 2, onChunk })).rejects.toThrow("enough")
})

describe("a report", () => {
  const failure = { seed: 7, kind: "nsq", law: "lost", what: "it is gone" } as const
  const sum: Campaign.Sum = {
    seeds: 20_000,
    perKind: { nsq: 20_000 },
    facts: 9,
    cpu: 4000,
    seen: { "fault: cut": 10_000 },
    failures: [failure],
    code: "mine",
    others: 0
  }
  const given = { args: ["--report", "a b"], from: 1, kinds: ["nsq"], wall: 2000 } as const

  it("holds all that must be known to run it again", () => {
    const report = Report.make(sum, given)
    expect(report).toEqual({
      command: 'npm run simulate -- --report "a b"',
      node: process.version,
      code: "mine",
      from: 1,
      seeds: 20_000,
      kinds: ["nsq"],
      perKind: { nsq: 20_000 },
      facts: 9,
      cpuSeconds: 4,
      seedsPerCpuSecond: 5000,
      wallSeconds: 2,
      failures: [{ ...failure, replay: "npm run simulate -- --seed 7 --kind nsq" }],
      seen: { "fault: cut": "50.00 %" },
      missing: "not checked: only seeds of all kinds meet every situation"
    })
    expect(Report.print(report)).toContain("Replay: npm run simulate -- --seed 7 --kind nsq")
    expect(Report.print(report)).toContain("coverage: not checked")
  })

  it("says which situations are missing, or that there are too few seeds to tell", () => {
    const all = { ...given, kinds: ["rabbitmq", "sqs", "nsq", "sqlite"] } as const
    const enough = Report.make({ ...sum, failures: [] }, all)
    expect(enough.missing).toContain("fault: late")
    expect(enough.missing).not.toContain("fault: cut")
    expect(Report.isBad(enough)).toBe(true)
    const few = Report.make({ ...sum, failures: [], seeds: 100 }, all)
    expect(few.missing).toBe("not checked: it needs 10000 seeds, there are 100")
    expect(Report.isBad(few)).toBe(false)
  })
})

describe("the command", () => {
  const run = (...args: ReadonlyArray<string>) =>
    new Promise<{ readonly code: unknown; readonly out: string; readonly told: string }>((resolve) => {
      const cli = new URL("../src/cli.ts", import.meta.url).pathname
      const env = { ...process.env, NODE_OPTIONS: "" }
      execFile(process.execPath, ["--conditions=@requeue/source", cli, ...args], { env }, (error, out, told) =>
        resolve({ code: error === null ? 0 : error.code, out, told })
      )
    })

  it.each<[string, string]>([
    ["--seed=", '--seed must be a whole number >= 0, got ""'],
    ["--from=9007199254740990", "--from and --seeds must end at a safe integer"],
    ["--seeds=1.5", '--seeds must be a whole number >= 1, got "1.5"'],
    ["--workers=0", '--workers must be a whole number >= 1, got "0"'],
    ["--seed=1 --workers=2", "--seed and --workers exclude each other"],
    ["--scenario=a.json --kind=rabbitmq", "--scenario and --kind exclude each other"],
    ["--results=a --report=a", "--report and --results must be two files"],
    ["--kind=pull", '--kind must be one of rabbitmq, sqs, nsq, sqlite, got "pull"'],
    ["--kind=rabbitmq --kind=rabbitmq", "--kind must name each kind once, got rabbitmq, rabbitmq"],
    ["--from -1", "Option '--from' argument is ambiguous."]
  ])("refuses %s", (args, message) => {
    expect(() => Arguments.read(args.split(" "))).toThrow(message)
  })

  it("says in one line what is wrong, before any seed is run", async () => {
    const wrong = ["--from=-1", "--report=/no/a.json"]
    for (const { code, told } of await Promise.all(wrong.map((each) => run(each)))) {
      expect([code, told.trim().split("\n").length]).toEqual([2, 1])
    }
  })

  it("says in one line what is wrong with a scenario", async () => {
    const file = join(folder, "scenario.json")
    writeFileSync(file, "{}")
    expect(await run(`--scenario=${file}`)).toMatchObject({
      code: 2,
      told: expect.stringMatching(/^scenario: [^\n]*\n$/)
    })
    writeFileSync(file, ScenarioFile.write(Generate.scenario(5, ["nsq"])))
    const { code, out } = await run(`--scenario=${file}`)
    expect([code, out.includes("seed 5, broker nsq"), out.includes(`--scenario ${file}`)]).toEqual([0, true, true])
  })

  it("writes a report, and says that other code's chunks do not count", async () => {
    const [results, report] = [join(folder, "cli.jsonl"), join(folder, "cli.json")]
    appendFileSync(results, `${JSON.stringify({ code: "other", ...result(1) })}\n`)
    const args = ["--seeds=3", "--kind=rabbitmq", "--workers=1", `--results=${results}`, `--report=${report}`]
    const { code, out, told } = await run(...args)
    expect([code, out.split("\n")[0]]).toEqual([
      0,
      "coverage: not checked: only seeds of all kinds meet every situation"
    ])
    expect(told).toContain("has 1 chunks of other code")
    expect(JSON.parse(readFileSync(report, "utf8"))).toMatchObject({ seeds: 3, kinds: ["rabbitmq"], failures: [] })
  })
})
