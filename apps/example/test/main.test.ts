/** The built program as a child process. */
import type { BrokerName } from "@requeue/brokers"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { connect } from "node:net"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, test } from "vitest"
import type { Report } from "../src/report.ts"

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))

const children: Array<ChildProcess> = []
afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL")
})

const start = (...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  children.push(child)
  const output = { stdout: "", stderr: "" }
  const listeners = new Set<() => void>()
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text
      for (const listener of listeners) listener()
    })
  }
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null
  }))
  return {
    child,
    output,
    ended,
    /** Resolves when standard error matches. */
    says: (pattern: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const listener = () => pattern.test(output.stderr) && resolve()
        listeners.add(listener)
        listener()
        void ended.then(() => reject(new Error(`ended before it said ${pattern}: ${output.stderr}`)))
      }),
    report: () => JSON.parse(output.stdout.trimEnd().split("\n").at(-1)!) as Report
  }
}

const outcome = ({ attempts, causes, deadLettered, deadLettersByReason, delivered, published, retried }: Report) => ({
  attempts,
  causes: causes.toSorted((a, b) => (a.error < b.error ? -1 : 1)),
  deadLettered,
  deadLettersByReason,
  delivered,
  published,
  retried
})

describe("the program", () => {
  test("dispatches, balances its books, redrives, and says so in one line of JSON", { timeout: 40_000 }, async () => {
    const [run, again] = [
      start("--json", "--count", "100", "--seed", "7"),
      start("--json", "--count", "100", "--seed", "7")
    ]
    expect(await run.ended).toEqual({ code: 0, signal: null })
    expect(run.output.stdout.split("\n").length).toBe(2)
    const report = run.report()
    expect(report).toMatchObject({
      broker: "memory",
      seed: 7,
      published: 100,
      queued: 0,
      missing: 0,
      balanced: true,
      early: 0,
      duplicates: 0,
      rejected: 0,
      stopped: null,
      redrive: { redriven: report.deadLettered, delivered: 100, deadLettered: 0, queued: 0, balanced: true }
    })
    expect(report.deadLettered).toBeGreaterThan(0)
    expect(report.delivered + report.deadLettered).toBe(100)
    expect(report.retried).toBeGreaterThan(0)
    expect(report.measured).toBe(report.retried)
    expect(report.elapsedMs).toBeLessThan(30_000)
    expect(run.output.stderr).toContain("Every message is accounted for")

    // The same seed has the same outcome, whatever the jitter did to the times.
    await again.ended
    expect(outcome(again.report())).toEqual(outcome(report))
  })

  test("on SIGTERM it drains, and the books say what is still queued", { timeout: 30_000 }, async () => {
    const run = start("--json", "--count", "1000", "--seed", "7", "--drain", "5s")
    await run.says(/delivered [1-9]/)
    run.child.kill("SIGTERM")
    expect(await run.ended).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({
      balanced: true,
      early: 0,
      stopped: { by: "SIGTERM", complete: true, interrupted: 0 },
      redrive: null
    })
    expect(report.published).toBeLessThan(1000)
    expect(report.queued).toBeGreaterThan(0)
    expect(report.published).toBe(report.delivered + report.deadLettered + report.queued)
    expect(run.output.stderr).toContain(`the ${report.queued} messages still queued are gone with this process`)
  })

  const real: ReadonlyArray<BrokerName> = ["rabbitmq", "nsq"]
  test.each(real)("on %s it starts one, drains on SIGTERM, and leaves none", { timeout: 120_000 }, async (broker) => {
    const run = start("--json", "--broker", broker, "--count", "400", "--seed", "7")
    await run.says(/delivered [1-9]/)
    run.child.kill("SIGTERM")
    expect(await run.ended).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({ broker, balanced: true, early: 0, stopped: { by: "SIGTERM" } })
    expect(report.queued).toBeGreaterThan(0)
    expect(run.output.stderr).toContain(`the ${report.queued} messages still queued are kept by the broker`)
    if (report.keeps !== "until the end") return
    const port = Number(/ on 127\.0\.0\.1:(\d+)/.exec(run.output.stderr)?.[1])
    await expect(once(connect(port, "127.0.0.1"), "connect")).rejects.toThrow("ECONNREFUSED")
  })

  test("on SQS the books balance, before and after the redrive", { timeout: 120_000 }, async () => {
    const run = start("--json", "--broker", "sqs", "--count", "200", "--seed", "7")
    expect(await run.ended).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({ broker: "sqs", balanced: true, early: 0, stopped: null, published: 200 })
    expect(report.redrive).toMatchObject({ balanced: true, delivered: 200, deadLettered: 0 })
  })

  test("a drain without time interrupts the handlers, and the books still balance", { timeout: 30_000 }, async () => {
    const run = start("--json", "--count", "1000", "--seed", "7", "--drain", "0s")
    await run.says(/delivered [1-9]/)
    run.child.kill("SIGINT")
    expect(await run.ended).toEqual({ code: 0, signal: null })
    expect(run.report()).toMatchObject({ balanced: true, stopped: { by: "SIGINT" } })
  })

  test("a second Ctrl-C stops at once", { timeout: 30_000 }, async () => {
    const run = start("--json", "--count", "1000", "--drain", "1h")
    await run.says(/in flight [1-9]/)
    run.child.kill("SIGINT")
    await run.says(/SIGINT: draining/)
    const asked = performance.now()
    run.child.kill("SIGINT")
    expect(await run.ended).toEqual({ code: 130, signal: null })
    expect(performance.now() - asked).toBeLessThan(500)
    expect(run.output.stdout).toBe("")
  })

  test.each<[ReadonlyArray<string>, RegExp]>([
    [["--broker", "kafka"], /^--broker: no broker named "kafka"; there is: memory, rabbitmq, nsq, sqs\n$/],
    [["--count", "none"], /^--count: must be a whole number/],
    [["--url", "memory:?maxMessages=none"], /^maxMessages .*must be a whole number/]
  ])("%j ends with one sentence and exit code 2", async (args, message) => {
    const run = start(...args)
    expect(await run.ended).toEqual({ code: 2, signal: null })
    expect(run.output.stderr).toMatch(message)
    expect(run.output.stdout).toBe("")
  })

  test("--help goes to standard output", async () => {
    const run = start("--help")
    expect(await run.ended).toEqual({ code: 0, signal: null })
    expect(run.output.stdout).toContain("Exit codes")
  })
})
