import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Direct from "../../src/runtime/Direct.ts"

/** A direct effect that ends when it is told to, and what was done with it. */
const start = (known?: string) => {
  let end: (exit: Exit.Exit<number, string>) => void = () => {}
  const did: Array<string> = []
  const effect = Direct.make<number, string>((onExit) => {
    did.push("begun")
    end = onExit
    return () => {
      did.push("given up")
      return known
    }
  })
  return { effect, did, end: (exit: Exit.Exit<number, string>) => end(exit) }
}

/** Runs it without a fiber, and keeps what it ends with. */
const run = (effect: Effect.Effect<number, string>) => {
  const exits: Array<Exit.Exit<number, string>> = []
  const forked: Array<unknown> = []
  const fork = (one: Effect.Effect<number, string>) => {
    forked.push(one)
    return Effect.runFork(one)
  }
  const interrupt = Direct.run(effect, fork, (exit) => exits.push(exit))
  return { exits, forked, interrupt }
}

const errorIn = (exit: Exit.Exit<number, string> | undefined) =>
  exit !== undefined && Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

describe("a direct effect", () => {
  it("runs without a fiber, and ends once", () => {
    const { did, effect, end } = start("known")
    assert.deepStrictEqual(did, [])
    const { exits, forked, interrupt } = run(effect)
    end(Exit.succeed(1))
    end(Exit.succeed(2))
    interrupt()
    assert.deepStrictEqual([exits, forked, did], [[Exit.succeed(1)], [], ["begun"]])
  })

  it("is given up once, with what is known of it", () => {
    for (const known of [undefined, "known"]) {
      const { did, effect, end } = start(known)
      const { exits, interrupt } = run(effect)
      interrupt()
      interrupt()
      end(Exit.succeed(1))
      assert.deepStrictEqual([did, exits.length], [["begun", "given up"], 1])
      if (known === undefined) assert.isTrue(Exit.hasInterrupts(exits[0]!))
      else assert.strictEqual(errorIn(exits[0]), known)
    }
  })

  it("dies of what it throws when it begins", () => {
    const thrown = new Error("thrown")
    const { exits, interrupt } = run(
      Direct.make(() => {
        throw thrown
      })
    )
    interrupt()
    assert.strictEqual(errorIn(exits[0]), thrown)
    assert.strictEqual(exits.length, 1)
  })

  it.effect("is an effect like any other", () =>
    Effect.gen(function* () {
      const { effect, end } = start()
      const fiber = yield* Effect.forkChild(
        Effect.map(effect, (n) => n + 1),
        { startImmediately: true }
      )
      end(Exit.succeed(1))
      assert.strictEqual(yield* Fiber.join(fiber), 2)
      const ended = Direct.make<number, string>((onExit) => Direct.ended(onExit, Exit.fail("ended")))
      assert.strictEqual(yield* Effect.flip(ended), "ended")
    })
  )

  it.effect("tells what is known beside the interruption of its fiber", () =>
    Effect.gen(function* () {
      const { did, effect } = start("known")
      const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.hasInterrupts(exit))
      assert.strictEqual(Exit.isFailure(exit) && exit.cause.reasons.find(Cause.isFailReason)?.error, "known")
      assert.deepStrictEqual(did, ["begun", "given up"])
    })
  )
})

describe("an effect that is not direct", () => {
  it("runs in a fiber, and is interrupted there", () => {
    const done = run(Effect.succeed(1))
    assert.deepStrictEqual([done.exits, done.forked.length], [[Exit.succeed(1)], 1])
    const { exits, interrupt } = run(Effect.map(start().effect, (n) => n))
    interrupt()
    assert.isTrue(Exit.hasInterrupts(exits[0]!))
  })
})
