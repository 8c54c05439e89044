/** An audit that fails. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { Audit, Authorization, type Console } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { prepared, redrive } from "./prepared.ts"

/** A turn of Node's loop, in which streams and promises go on. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Values that have no text, or throw when they are asked for it. */
const textless: ReadonlyArray<readonly [string, unknown]> = [
  ["an object without a prototype", Object.create(null)],
  ["an error whose message is a symbol", Object.assign(new Error("x"), { message: Symbol("x") })],
  [
    "an error whose message is a getter that throws",
    Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("y")
      }
    })
  ]
]

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an audit that cannot be written: does not keep a job from being stopped", () =>
    Effect.gen(function* () {
      let isFull = false
      const audit = () => (isFull ? Promise.reject(new Error("the disk is full")) : undefined)
      const { get, planned, post, settled, submit } = yield* prepared({ audit: audit as Console.Options["audit"] }) // Answers nothing, or rejects.
      const begun = yield* post("/redrive", { ...redrive(yield* planned), how: "stages" })
      const path = begun.headers.get("location")!
      const running = yield* get(path)
      isFull = true
      const { status, text } = yield* submit(running, "/stop")
      assert.strictEqual(status, 503)
      assert.match(text, /the job stops, but the audit could not be written/)
      assert.match((yield* settled(path)).text, /An operator stopped it\..*|the audit has no line of its end/)
    })
  ),
  Attack.make("an audit that cannot be written: lets nothing happen", () =>
    Effect.gen(function* () {
      let isFull = false
      const audit = () => (isFull ? Promise.reject(new Error("the disk is full")) : undefined)
      const { causes, left, letter, planned, post, submit } = yield* prepared({
        audit: audit as Console.Options["audit"], // Answers nothing, or rejects.
        authorize: Authorization.everybody("root", "purge")
      })
      const plan = yield* planned
      isFull = true
      const body = yield* submit(letter, "/letter")
      assert.strictEqual(body.status, 503)
      assert.notInclude(body.text, "the-body")
      assert.strictEqual((yield* post("/redrive", redrive(plan))).status, 503)
      assert.strictEqual((yield* post("/purge", { ...redrive(causes), name: "orders.dlq" })).status, 503)
      assert.strictEqual(yield* left, 1)
    })
  ),
  ...textless.map(([name, thrown]) =>
    Attack.make(`an audit that cannot be written: locks no queue where it throws ${name}`, () =>
      Effect.gen(function* () {
        let isBroken = false
        const audit = () => {
          if (isBroken) throw thrown
        }
        const { causes, left, planned, post, settled, submit } = yield* prepared({ audit })
        const plan = yield* planned
        isBroken = true
        const refused = yield* submit(causes, "/park")
        assert.strictEqual(refused.status, 503)
        assert.include(refused.text, "the audit could not be written")
        isBroken = false
        const begun = yield* post("/redrive", redrive(plan))
        assert.strictEqual(begun.status, 303)
        isBroken = true
        const ended = yield* settled(begun.headers.get("location")!)
        assert.include(ended.text, "The job failed")
        isBroken = false
        assert.strictEqual((yield* submit(causes, "/park")).status, 303)
        assert.strictEqual(yield* left, 1)
      })
    )
  ),
  Attack.make("an audit that cannot be written: does not even look for a body whose first line is missing", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const audit = (line: string) => {
        lines.push(line)
        if (line.includes(`"begin"`)) throw new Error("full")
      }
      const { letter, submit } = yield* prepared({ audit })
      const { status, text } = yield* submit(letter, "/letter")
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
      assert.lengthOf(lines, 1)
    })
  ),
  Attack.make("an audit that cannot be written: shows no body whose last line is missing", () =>
    Effect.gen(function* () {
      const audit = (line: string) => (line.includes(`"end"`) ? Promise.reject(new Error("full")) : undefined)
      const { letter, submit } = yield* prepared({ audit: audit as Console.Options["audit"] }) // Answers nothing, or rejects.
      const { status, text } = yield* submit(letter, "/letter").pipe(Effect.map((page) => page))
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
    })
  ),
  ...["EPIPE: nobody reads it", "ENOSPC: the disk is full"].map((message) =>
    Attack.make(`an audit that cannot be written: lets nothing happen where its stream fails: ${message}`, () =>
      Effect.gen(function* () {
        const stream = new Writable({ write: (_, __, done) => done(new Error(message)) })
        const audit = Audit.toStream(stream)
        const { causes, left, post } = yield* prepared({ audit, authorize: Authorization.everybody("root", "purge") })
        const planned = yield* post("/plan", redrive(causes))
        assert.strictEqual(planned.status, 503)
        assert.include(planned.text, message)
        assert.strictEqual((yield* post("/purge", { ...redrive(causes), name: "orders.dlq" })).status, 503)
        assert.strictEqual(yield* left, 1)
      })
    )
  ),
  Attack.make("an audit that cannot be written: lets nothing happen while its stream takes nothing", () =>
    Effect.gen(function* () {
      const audit = Audit.toStream(new Writable({ write: () => undefined }))
      const { causes, left, post } = yield* prepared({ audit })
      const answer = yield* Effect.forkChild(post("/plan", redrive(causes)))
      for (let waits = 0; waits < 20; waits++) yield* Effect.andThen(Effect.promise(turn), TestClock.adjust("1 second"))
      assert.isDefined(answer.pollUnsafe(), "it waits for ever")
      const { status, text } = yield* Fiber.join(answer)
      assert.strictEqual(status, 503)
      assert.include(text, "no answer in 10 s")
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make(
    "an operator who denies it: is named with the letter whose body was shown, and with what was stopped",
    () =>
      Effect.gen(function* () {
        const { audit, letter, post, submit, causes } = yield* prepared()
        yield* submit(letter, "/letter")
        const plan = yield* submit(causes, "/plan")
        const id = new URL(plan.headers.get("location")!, World.origin).searchParams.get("id")!
        yield* post("/stop", { id, token: redrive(causes).token })
        const told = audit.map(({ command, event, operator, options }) => ({ command, event, operator, options }))
        for (const event of ["begin", "end"]) {
          const body = { command: "console body", event, operator: "local", options: { letter: "order-1" } }
          assert.deepInclude(told, body)
          assert.deepInclude(told, { command: "console stop", event, operator: "local", options: {} })
        }
      })
  ),
  Attack.make("an audit that cannot be written: has no line glued to one that was torn", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "requeue-audit-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const file = join(folder, "audit.jsonl")
      writeFileSync(file, `{"time":"2026-01-`)
      const write = Audit.toFile(file)
      yield* Effect.promise(() => Promise.all(["1", "2", "3"].map(async (line) => write(`${line}\n`))))
      assert.deepStrictEqual(readFileSync(file, "utf8").split("\n"), [`{"time":"2026-01-`, "1", "2", "3", ""])
    })
  )
]
