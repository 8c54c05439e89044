/** Signs of life while a broker lets a command wait: on terminals alone, and only when people would wonder. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Readable, Writable } from "node:stream"
import { assert, describe, it } from "vitest"
import * as Output from "../src/Output.ts"
import { Process } from "../src/Process.ts"
import * as Waiting from "../src/Waiting.ts"

/** The standard error of work that takes so long. */
const said = (millis: number, { isTTY = true, json = false } = {}) =>
  Effect.gen(function* () {
    let text = ""
    const write = (chunk: unknown, _: unknown, done: () => void) => {
      text += String(chunk)
      done()
    }
    const stderr = Object.assign(new Writable({ write }), { isTTY })
    const process = { cwd: () => "/", env: {}, stdin: Readable.from([]), stdout: new Writable({ write }), stderr }
    let answered = 0
    const work = Effect.andThen(
      Effect.sleep(millis),
      Effect.sync(() => void answered++)
    )
    const shown = Waiting.telling(() => `${answered} of 1`)(work).pipe(
      Effect.provideServiceEffect(Output.Output, Output.make(json)),
      Effect.provideService(Process, process)
    )
    const fiber = yield* Effect.forkChild(shown)
    yield* Effect.forEach(Array.from({ length: 10 }), () => TestClock.adjust("100 millis"))
    yield* Fiber.join(fiber)
    return text
  }).pipe(Effect.provide(TestClock.layer()), Effect.runPromise)

describe("work that a broker lets wait", () => {
  it("says nothing when it ends at once", async () => assert.notInclude(await said(299), "0 of 1"))

  it("says how far it is, and removes that when it ends", async () =>
    assert.strictEqual(await said(301), "\r\u001b[K0 of 1\r\u001b[K"))

  it.each([{ isTTY: false }, { json: true }])("says nothing to a file or a script: %j", async (where) =>
    assert.strictEqual(await said(900, where), "")
  )
})
