import { once } from "node:events"
import { connect } from "node:net"
import { describe, expect, test, vi } from "vitest"
import { replyOf, subscriberOf } from "../../src/endpoints.ts"
import { webhook } from "../../src/payloads.ts"
import { number } from "../../src/progress.ts"
import type { Report } from "../../src/report.ts"
import { start } from "../real/program.ts"

// Each wait has a deadline of its own, and says what it waited for.
vi.setConfig({ testTimeout: 30 * 60_000 })

const outcome = ({ causes, ...report }: Report) => ({
  attempts: report.attempts,
  causes: causes.toSorted((a, b) => (a.error < b.error ? -1 : 1)),
  deadLettered: report.deadLettered,
  deadLettersByReason: report.deadLettersByReason,
  delivered: report.delivered,
  published: report.published,
  retried: report.retried,
  timedOut: report.timedOut
})

/** The first attempt at the message of this number is never answered. */
const stalls = (seed: number, index: number): boolean => {
  const { id } = webhook(seed, index)
  return replyOf(seed, subscriberOf(seed, id), id, 1, false)._tag === "Stall"
}

/** With this seed the only message of a run is in flight until the handler's time is up. */
const stallsAtOnce = (): string => {
  for (let seed = 0; ; seed++) if (stalls(seed, 0)) return String(seed)
}

// They wait more than they work.
describe.concurrent("the program", () => {
  test("dispatches, balances its books, redrives, and says so in one line of JSON", async () => {
    const [run, again] = [
      start("--json", "--count", "100", "--seed", "7"),
      start("--json", "--count", "100", "--seed", "7", "--outbox")
    ]
    expect(await run.ended()).toEqual({ code: 0, signal: null })
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
    expect(run.output.stderr).toContain("Every message is accounted for")

    // Who never answers has the handler's whole time, and nobody else needs it.
    expect(report.timedOut).toBe(Array.from({ length: 100 }, (_, index) => stalls(7, index)).filter(Boolean).length)
    expect(report.timedOut).toBeGreaterThan(0)
    expect(report.elapsedMs).toBeGreaterThan(10_000)

    // The same seed has the same outcome, whatever the jitter, a slow machine or an outbox did to the times.
    expect(await again.ended()).toEqual({ code: 0, signal: null })
    expect(outcome(again.report())).toEqual(outcome(report))
  })

  test("on SIGTERM it drains, and the books say what is still queued", async () => {
    // So many that they are still being published, however slow the machine.
    const run = start("--json", "--count", "5000", "--seed", "7", "--drain", "10m")
    await run.says(/delivered [1-9]/)
    run.child.kill("SIGTERM")
    expect(await run.ended()).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({
      balanced: true,
      early: 0,
      stopped: { by: "SIGTERM", complete: true, interrupted: 0 },
      redrive: null
    })
    expect(report.published).toBeLessThan(5000)
    expect(report.queued).toBeGreaterThan(0)
    expect(report.published).toBe(report.delivered + report.deadLettered + report.queued)
    expect(run.output.stderr).toContain(`the ${number(report.queued)} messages still queued are gone with this process`)
  })

  test("on NSQ it starts a server, drains on SIGTERM, and leaves none", async () => {
    const run = start("--json", "--broker", "nsq", "--count", "1000", "--seed", "7")
    await run.says(/delivered [1-9]/)
    run.child.kill("SIGTERM")
    expect(await run.ended()).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({ broker: "nsq", balanced: true, early: 0, stopped: { by: "SIGTERM" } })
    expect(report.queued).toBeGreaterThan(0)
    expect(run.output.stderr).toContain(`the ${report.queued} messages still queued are kept by the broker`)
    if (report.keeps !== "until the end") return
    const port = Number(/ on 127\.0\.0\.1:(\d+)/.exec(run.output.stderr)?.[1])
    await expect(once(connect(port, "127.0.0.1"), "connect")).rejects.toThrow("ECONNREFUSED")
  })

  test("on SQS the books balance, before and after the redrive", async () => {
    const run = start("--json", "--broker", "sqs", "--count", "200", "--seed", "7")
    expect(await run.ended()).toEqual({ code: 0, signal: null })
    const report = run.report()
    expect(report).toMatchObject({ broker: "sqs", balanced: true, early: 0, stopped: null, published: 200 })
    expect(report.redrive).toMatchObject({ balanced: true, delivered: 200, deadLettered: 0 })
  })

  test("a handler that a drain without time interrupts gives its message back", async () => {
    const run = start("--json", "--count", "1", "--seed", stallsAtOnce(), "--drain", "0s")
    await run.says(/in flight 1/)
    run.child.kill("SIGINT")
    expect(await run.ended()).toEqual({ code: 0, signal: null })
    expect(run.report()).toMatchObject({
      balanced: true,
      queued: 1,
      stopped: { by: "SIGINT", complete: false, interrupted: 1 }
    })
  })

  test("a second Ctrl-C does not wait for the handlers", async () => {
    const run = start("--json", "--count", "1", "--seed", stallsAtOnce(), "--drain", "1h")
    await run.says(/in flight 1/)
    run.child.kill("SIGINT")
    await run.says(/SIGINT: draining/)
    run.child.kill("SIGINT")
    expect(await run.ended()).toEqual({ code: 130, signal: null })
    expect(run.output.stderr).not.toContain("drained in")
    expect(run.output.stdout).toBe("")
  })

  // Those of the options themselves are in ../options.test.ts.
  test("a mistake ends with one sentence and exit code 2", async () => {
    const run = start("--url", "memory:?maxMessages=none")
    expect(await run.ended()).toEqual({ code: 2, signal: null })
    expect(run.output.stderr).toMatch(/^maxMessages .*must be a whole number/)
    expect(run.output.stdout).toBe("")
  })

  test("--help goes to standard output", async () => {
    const run = start("--help")
    expect(await run.ended()).toEqual({ code: 0, signal: null })
    expect(run.output.stdout).toContain("Exit codes")
  })
})
